// A notification of the worker of the page, which browsers show where a page may show none.

const WORKER = "/assets/worker.js";
const ACTIVE_MS = 5000;

/** Shows a notification; gives what withdraws it. Throws where the browser has no workers, or shows none. */
export async function showByWorker(title: string, options: NotificationOptions): Promise<() => void> {
  const registration = await navigator.serviceWorker.register(WORKER);
  await activated(registration);
  await registration.showNotification(title, options);
  return () => void withdraw(registration, options.tag ?? "");
}

async function withdraw(registration: ServiceWorkerRegistration, tag: string): Promise<void> {
  for (const shown of await registration.getNotifications({ tag })) shown.close();
}

function activated(registration: ServiceWorkerRegistration): Promise<void> {
  const worker = registration.active ?? registration.waiting ?? registration.installing;
  return new Promise((done, fail) => {
    const look = () => {
      if (worker?.state === "activated") done();
    };
    worker?.addEventListener("statechange", look);
    setTimeout(() => fail(new Error("the worker of the page was not started")), ACTIVE_MS);
    look();
  });
}
