package tgapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"ductor/bot/render"
	"ductor/bot/render/rendertest"
	"ductor/internal/secrets"
)

const secretToken = "123456:AAbb-Cc_Dd0123456789"

func TestScrubber(t *testing.T) {
	s := NewScrubber(secretToken, "hunter2-hunter2", "p@ss word/1", "abc")
	for _, c := range []struct{ in, want string }{
		{"nothing", "nothing"},
		{"GET /bot" + secretToken + "/getMe", "GET /bot[secret removed]/getMe"},
		{"/file/bot123456%3AAAbb-Cc_Dd0123456789/x", "/file/bot[secret removed]/x"},
		{"only AAbb-Cc_Dd0123456789", "only [secret removed]"},
		{"hunter2-hunter2 and p%40ss+word%2F1", "[secret removed] and [secret removed]"},
		{"abc is too short to be a secret", "abc is too short to be a secret"},
	} {
		if got := s.String(c.in); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
	if got := (*Scrubber)(nil).String("x"); got != "x" {
		t.Errorf("without a scrubber x became %q", got)
	}
}

func TestScrubberKeepsEntitiesInPlace(t *testing.T) {
	s := NewScrubber(secretToken, "pässwörd😀")
	in := render.Concat(render.Plain("a pässwörd😀 "), render.Markdown("[here](https://x.org/"+secretToken+")"))
	got := s.Text(in)
	var entities []rendertest.Entity
	for _, e := range got.Entities {
		entities = append(entities, rendertest.Entity{
			Kind: string(e.Kind), Offset: e.Offset, Length: e.Length, URL: e.URL, Language: e.Language,
		})
	}
	if err := rendertest.Check(got.Text, entities); err != nil {
		t.Error(err)
	}
	if want := "a " + strings.Repeat("•", 10) + " here"; got.Text != want {
		t.Errorf("%q, want %q", got.Text, want)
	}
	if got.Entities[0].URL != "https://x.org/[secret]" || in.Entities[0].URL == got.Entities[0].URL {
		t.Errorf("link to %q", got.Entities[0].URL)
	}
}

func TestScrubbedLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(NewScrubber(secretToken).Handler(slog.NewTextHandler(&out, nil)))
	log = log.With("base", "x/"+secretToken).WithGroup("g")
	log.ErrorContext(context.Background(), "failed "+secretToken,
		"err", fmt.Errorf("get: %w", errors.New("https://api/bot"+secretToken)), "n", 1,
		slog.Group("in", "a", secretToken, "b", []string{secretToken}), "url", stringer{})
	if strings.Contains(out.String(), "AAbb") || strings.Count(out.String(), secrets.Removed) != 6 {
		t.Errorf("the log says %s", out.String())
	}
	if !log.Enabled(context.Background(), slog.LevelError) || log.Enabled(context.Background(), slog.LevelDebug) {
		t.Error("levels changed")
	}
}

type stringer struct{}

func (stringer) LogValue() slog.Value { return slog.StringValue("v " + secretToken) }
