#!/bin/sh
# What the tests need besides Python: installed where it is missing, if this user may. Without PostgreSQL or
# chromium the tests that use them are skipped; without Java the Spark engine cannot be tested, which is an error.
PATH="$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)"
[ -n "$JAVA_HOME" ] && PATH="$PATH:$JAVA_HOME/bin"
missing=
for pair in java:openjdk-17-jre-headless initdb:postgresql chromium:chromium chromedriver:chromium-driver; do
  command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ] && command -v apt-get >/dev/null; then
  sudo=
  [ "$(id -u)" = 0 ] || sudo="sudo -n"
  export DEBIAN_FRONTEND=noninteractive
  install="$sudo apt-get install -y -q --no-install-recommends $missing"
  { $install || { $sudo apt-get update -q && $install; }; } >/dev/null 2>&1 || echo "could not install$missing" >&2
fi
command -v java >/dev/null || {
  echo 'java must be on the path for the Spark engine, got none; install Java 17 (openjdk-17-jre-headless)' >&2
  exit 1
}
