package card

import (
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// The reason of a retry is in the language of the chat.
func TestWhyTheModelIsAskedAgain(t *testing.T) {
	for want, r := range map[string]cli.Retry{
		"":                          {},
		"das Modell ist überlastet": {Why: cli.Overloaded},
		"das Anfragelimit des Modells ist erreicht; Versuch 6 von 10 in 16 s": {Why: cli.LimitReached, Attempt: 6, Most: 10, In: 16 * time.Second},
		"keine Verbindung zum Modell; Versuch 1 von 10":                       {Why: cli.NetworkDown, Attempt: 1, Most: 10},
	} {
		if got := retryText(lang.Language("de").Printer(), r); got != want {
			t.Errorf("%+v is %q, want %q", r, got, want)
		}
	}
}

// The waiting time of a reason that the card already shows does not depend on status_after, and needs no requests
// before it changes.
func TestTheClockOfAReasonRunsBeforeStatusAfter(t *testing.T) {
	for want, ev := range map[string]cli.Status{
		"⏳ preparing… 10 s":                               {Kind: cli.StatusWaiting, Detail: "preparing"},
		"🔁 asking the model's API again… overloaded 10 s": {Kind: cli.StatusRetrying, Detail: "overloaded"},
	} {
		withRig(t, func(s *rig) {
			s.cards.restyle(func(l *Look) { l.StatusAfter = time.Minute })
			k := s.newCard().(*card)
			k.Show(ev)
			time.Sleep(15 * time.Second)
			s.wantText(want)
			for range 10 {
				time.Sleep(4 * time.Second)
				synctest.Wait()
				k.mu.Lock()
				at, due := k.dueLocked()
				if !due || !at.After(time.Now()) {
					t.Errorf("%q: a request was due %s ago, and none changed the card", want, time.Since(at))
				}
				k.mu.Unlock()
			}
			s.finish(k, orchestrator.Outcome{Text: "Done."})
		})
	}
}
