package telegram_test

import (
	"testing"

	"github.com/go-telegram/bot"

	"ductor/internal/sim/telegram"
)

// BenchmarkEditOverASocket measures the server's own cost: one edit by the real client over loopback.
func BenchmarkEditOverASocket(b *testing.B) {
	srv := telegram.New(telegram.Options{KeepVersions: 1, KeepCalls: 1})
	defer srv.Close()
	if err := srv.Start(); err != nil {
		b.Fatal(err)
	}
	client, err := bot.New(srv.Token(), bot.WithServerURL(srv.URL()))
	if err != nil {
		b.Fatal(err)
	}
	chat := srv.Private(7, "Ada")
	m, err := client.SendMessage(b.Context(), &bot.SendMessageParams{ChatID: chat.ID(), Text: "x"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := client.EditMessageText(b.Context(), &bot.EditMessageTextParams{
			ChatID: chat.ID(), MessageID: m.ID, Text: "edit " + itoa(i),
		}); err != nil {
			b.Fatal(err)
		}
	}
}
