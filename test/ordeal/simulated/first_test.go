package simulated

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPromptIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, t.TempDir())
		defer func() {
			if t.Failed() || testing.Verbose() {
				t.Log("\n" + strings.Join(w.Log(), "\n"))
			}
		}()
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		w.Owner.Person().Send(w.Owner, `[[text "hello p1"]]`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.Owner.AwaitText(ctx, "hello p1"); err != nil {
			t.Error(err)
		}
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
}
