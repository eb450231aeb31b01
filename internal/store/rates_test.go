package store

import (
	"testing"
	"time"

	"ductor/orchestrator"
)

func TestSendRates(t *testing.T) {
	db := newDB(t)
	first := orchestrator.SendRate{Chat: -7, Every: 4500 * time.Millisecond, Burst: 6,
		Until: time.UnixMilli(1_700_000_000_123), Told: time.UnixMilli(1_700_000_000_001)}
	bot := orchestrator.SendRate{Chat: 0, Every: time.Second / 20, Burst: 20, Until: time.UnixMilli(0),
		Told: time.UnixMilli(0)}
	for _, r := range []orchestrator.SendRate{bot, {Chat: -7, Every: time.Second, Burst: 1}, first} {
		must(t, db.SaveSendRate(t.Context(), r))
	}
	same(t, "the rates", get[[]orchestrator.SendRate](t)(db.SendRates(t.Context())),
		[]orchestrator.SendRate{first, bot})
}
