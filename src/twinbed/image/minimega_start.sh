#!/bin/sh
# Goes on after a guest's first program has mounted file systems and loaded drivers: keeps minimega's client running.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C
exec </dev/console >/dev/console 2>&1
# There is no udev: the client asks for its port by this name.
port() {
    for each in /sys/class/virtio-ports/*; do
        [ -r "$each/name" ] && [ "$(cat "$each/name")" = cc ] && echo "/dev/${each##*/}" && return
    done
    return 1
}
until found=$(port); do sleep 0.1; done
mkdir -p /dev/virtio-ports
ln -sf "$found" /dev/virtio-ports/cc
if [ ! -x /miniccc ]; then
    echo "twinbed: this initrd was made without miniccc: minimega reaches nothing in this guest"
    while :; do sleep 3600; done
fi
while :; do
    /miniccc -serial /dev/virtio-ports/cc
    echo "twinbed: miniccc ended with code $?; it is started again"
    sleep 1
done
