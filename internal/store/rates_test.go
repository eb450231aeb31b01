package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/orchestrator"
)

func TestSendRates(t *testing.T) {
	db := newDB(t)
	first := orchestrator.SendRate{Chat: -7, Every: 4500 * time.Millisecond, Burst: 6,
		Until: time.UnixMilli(1_700_000_000_123), Told: time.UnixMilli(1_700_000_000_001)}
	bot := orchestrator.SendRate{Chat: 0, Every: time.Second / 20, Burst: 20, Until: time.UnixMilli(0),
		Told: time.UnixMilli(0)}
	for _, r := range []orchestrator.SendRate{bot, {Chat: -7, Every: time.Second, Burst: 1}, first} {
		if err := db.SaveSendRate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.SendRates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]orchestrator.SendRate{first, bot}, got); d != "" {
		t.Error(d)
	}
}
