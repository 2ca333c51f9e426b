# Waits for the machine; a second call returns at once.
if [ ! -e ready.tmp ]; then
  touch ready.tmp
  sleep 2
fi
echo ready
