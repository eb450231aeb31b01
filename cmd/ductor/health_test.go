package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// notifySocket returns the path of systemd's socket, and a channel of the messages that ductor sends.
func notifySocket(t *testing.T) (path string, told <-chan string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	messages, ended := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 4096)
		for {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			messages <- string(b[:n])
		}
	}()
	t.Cleanup(func() { conn.Close(); <-ended; os.RemoveAll(dir) })
	return path, messages
}

// awaitTold waits for a message to systemd.
func awaitTold(t *testing.T, told <-chan string, what string) string {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case got := <-told:
			if strings.Contains(got, what) {
				return got
			}
		case <-deadline:
			t.Fatalf("systemd is not told %q", what)
		}
	}
}

// healthz requests /healthz as a monitor does.
func healthz(addr string) (code int, body string) {
	r, err := http.Get("http://" + addr + "/healthz")
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	raw, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(raw)
}

// A daemon notifies systemd when it is ready, while it is alive and when it stops, and answers monitors.
func TestSystemdAndMonitorsLearnHowDuctorIs(t *testing.T) {
	socket, told := notifySocket(t)
	addr := unusedAddr(t)
	town := surroundings(t, nil)
	path := town.writeConfig()
	appendTo(t, path, fmt.Sprintf("\n[health]\nlisten = %q\n", addr))
	d := startDaemonIn(t, "", []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=600000"}, "run", "-c", path)
	awaitTold(t, told, "READY=1")
	awaitTold(t, told, "WATCHDOG=1\nSTATUS=polling ok, store ok")
	if code, body := healthz(addr); code != http.StatusOK || !strings.Contains(body, `"polling":{"status":"ok"`) {
		t.Errorf("a monitor gets %d %s", code, body)
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitTold(t, told, "STOPPING=1")
	if code := d.exit(t); code != 0 {
		t.Errorf("it ends with %d", code)
	}
}
