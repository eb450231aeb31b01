package health

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Manager is the service manager that started this process, usually systemd. It uses the sd_notify protocol.
type Manager struct {
	Notify   func(state string) error // nil if no service manager started this process
	Watchdog time.Duration            // maximum time between two signs of life; 0 if systemd expects none
	Log      *slog.Logger
}

// ManagerOf returns the service manager that the environment of this process names.
func ManagerOf(log *slog.Logger) Manager {
	m := Manager{Log: log}
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return m
	}
	m.Notify = func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("cannot feed the watchdog of systemd", "err", fmt.Errorf("read its interval: %w", err))
	}
	m.Watchdog = every
	return m
}

const (
	// tryInterval is the interval of test writes. A watchdog may require a shorter one.
	tryInterval = 30 * time.Second
	// startExtension is the time by which ductor extends systemd's start timeout, repeatedly, until Telegram has
	// answered. The first extension is requested before the default timeout of 90 seconds ends.
	startExtension = 2 * time.Minute
)

// interval returns the time between two signs of life. It is at most a third of Watchdog, so that systemd does not
// restart ductor after two consecutive signs were lost.
func (m Manager) interval() time.Duration {
	if m.Watchdog > 0 {
		return min(m.Watchdog/3, tryInterval)
	}
	return tryInterval
}

// Run periodically tests the store and notifies the manager, until ctx ends. It reports ductor as ready when Telegram
// has answered the first poll.
func (h *Health) Run(ctx context.Context, m Manager) {
	tick := time.NewTicker(m.interval())
	defer tick.Stop()
	for ready := false; ; {
		h.tryStore(ctx)
		ready = h.notifyManager(m, ready)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-h.polled:
		}
	}
}

// notifyManager sends a sign of life to the manager. If a restart of ductor would help, it sends none, so that the
// manager's watchdog restarts ductor. When Telegram is reachable for the first time, notifyManager also reports ductor
// as ready. It returns true if ductor was reported as ready, now or earlier.
func (h *Health) notifyManager(m Manager, ready bool) bool {
	s := h.State()
	switch {
	case s.restartHelps():
		m.Log.Error("ductor does not work; systemd restarts it if it has a watchdog", "polling", s.Polling, "store",
			s.Store)
		return ready
	case !ready && s.Answered.IsZero():
		m.notify(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=waiting for Telegram", startExtension.Microseconds()))
		return false
	case !ready:
		m.notify(daemon.SdNotifyReady + "\n" + daemon.SdNotifyWatchdog + "\nSTATUS=serving")
		return true
	}
	m.notify(fmt.Sprintf("%s\nSTATUS=polling %s, store %s", daemon.SdNotifyWatchdog, s.Polling, s.Store))
	return true
}

// Stopping notifies the manager that ductor is stopping.
func (m Manager) Stopping() { m.notify(daemon.SdNotifyStopping) }

func (m Manager) notify(state string) {
	if m.Notify == nil {
		return
	}
	if err := m.Notify(state); err != nil {
		m.Log.Warn("notify systemd", "err", err)
	}
}
