package card

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/lang"
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
