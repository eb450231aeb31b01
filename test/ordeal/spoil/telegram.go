// Package spoil makes the simulated Telegram fail as a scenario says. Packages simulated and real use it.
package spoil

import (
	"sync"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// Telegram is a simulated Telegram that can fail.
type Telegram struct {
	Server *telegram.Server

	mu       sync.Mutex
	injected []*telegram.Injected
}

// Calls makes calls fail. It ignores scenario.Away: the caller must break the connection to Telegram.
func (t *Telegram) Calls(s scenario.Telegram) {
	f := telegram.Fault{Method: s.Method, Skip: s.Skip, Times: s.Times, RetryAfter: max(1, int(s.For.Seconds()))}
	switch s.Fault {
	case scenario.LimitsStrict:
		t.Server.SetLimits(telegram.StrictLimits())
		return
	case scenario.LimitsReal:
		t.Server.SetLimits(telegram.RealLimits())
		return
	case scenario.Away:
		return
	case scenario.TooManyUnseen:
		f.Kind = telegram.DropBefore
		t.inject(f)
		f = telegram.Fault{Method: s.Method, When: isNoPoll, Kind: telegram.TooMany, Until: time.Now().Add(s.For)}
	case scenario.Ban:
		f = telegram.Fault{When: isNoPoll, Kind: telegram.TooMany, Until: time.Now().Add(s.For)}
	case scenario.Late:
		f.Late = s.For
	default:
		f.Kind = map[scenario.TelegramFault]telegram.FaultKind{
			scenario.TooMany: telegram.TooMany, scenario.ServerError: telegram.ServerError,
			scenario.BadGateway:   telegram.BadGateway,
			scenario.GatewayAfter: telegram.BadGatewayAfter, scenario.DropBefore: telegram.DropBefore,
			scenario.DropAfter: telegram.DropAfter,
			scenario.Half:      telegram.BadJSON, scenario.Hang: telegram.Hang,
		}[s.Fault]
	}
	t.inject(f)
}

func isNoPoll(c telegram.Call) bool { return c.Method != "getUpdates" }

func (t *Telegram) inject(f telegram.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.injected = append(t.injected, t.Server.Inject(f))
}

// Updates changes how Telegram delivers updates. If the step delays updates, Updates returns a function that delivers
// them. For all other steps, it returns nil.
func (t *Telegram) Updates(s scenario.Updates) (release func(updates int)) {
	switch s.How {
	case scenario.Duplicate:
		t.Server.Repeat(s.N)
	case scenario.Reorder:
		t.Server.Reverse(s.N)
	case scenario.Lag:
		return t.Server.Hold()
	}
	return nil
}

// Heal ends all faults. Updates that are already delayed remain delayed.
func (t *Telegram) Heal() {
	t.mu.Lock()
	for _, f := range t.injected {
		f.Remove()
	}
	t.injected = nil
	t.mu.Unlock()
	t.Server.SetLimits(telegram.Limits{})
	t.Server.Repeat(-1)
	t.Server.Reverse(-1)
}
