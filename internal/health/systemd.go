package health

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Manager is the service manager that started this process, by the protocol of sd_notify.
type Manager struct {
	Notify   func(state string) error // nil without a manager
	Watchdog time.Duration            // within which the manager wants a sign of life; 0 for none
	Log      *slog.Logger
}

// ManagerOf finds the manager in the environment of this process.
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
		log.Warn("the watchdog of systemd gets no signs of life", "err", fmt.Errorf("read its interval: %w", err))
	}
	m.Watchdog = every
	return m
}

const (
	// tryEvery is how often a write is tried where no watchdog wants it more often.
	tryEvery = 30 * time.Second
	// startExtension is how much more time the start gets each time, as long as Telegram does not answer: it comes well before
	// TimeoutStartSec of systemd ends, which is 90 seconds.
	startExtension = 2 * time.Minute
)

// every is how often Run looks: a watchdog bears that two signs of life are lost.
func (m Manager) every() time.Duration {
	if m.Watchdog > 0 {
		return min(m.Watchdog/3, tryEvery)
	}
	return tryEvery
}

// Run tries the store and tells the manager how things are, until ctx ends. The manager learns that ductor is ready when
// Telegram answered the first poll.
func (h *Health) Run(ctx context.Context, m Manager) {
	tick := time.NewTicker(m.every())
	defer tick.Stop()
	for ready := false; ; {
		h.tryStore(ctx)
		ready = h.tell(m, ready)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-h.polled:
		}
	}
}

// tell gives the manager a sign of life, if there is one to give. It returns whether the manager knows that ductor is ready.
func (h *Health) tell(m Manager, ready bool) bool {
	s := h.State()
	switch {
	case s.mendable():
		m.Log.Error("ductor does not work; systemd restarts it if it has a watchdog", "polling", s.Polling, "store", s.Store)
		return ready
	case !ready && s.Answered.IsZero():
		m.send(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=waiting for Telegram", startExtension.Microseconds()))
		return false
	case !ready:
		m.send(daemon.SdNotifyReady + "\n" + daemon.SdNotifyWatchdog + "\nSTATUS=serving")
		return true
	}
	m.send(fmt.Sprintf("%s\nSTATUS=polling %s, store %s", daemon.SdNotifyWatchdog, s.Polling, s.Store))
	return true
}

// Stopping tells the manager that ductor ends.
func (m Manager) Stopping() { m.send(daemon.SdNotifyStopping) }

func (m Manager) send(state string) {
	if m.Notify == nil {
		return
	}
	if err := m.Notify(state); err != nil {
		m.Log.Warn("tell systemd", "err", err)
	}
}
