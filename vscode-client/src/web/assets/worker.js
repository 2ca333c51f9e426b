// Shows notifications where an open page may show none (Chrome on Android). It answers no requests of the page.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(
    self.clients
      .matchAll({ type: "window", includeUncontrolled: true })
      .then(([page]) => (page ? page.focus() : self.clients.openWindow("/"))),
  );
});
