package tgapi

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf16"

	"ductor/bot/render"
	"ductor/internal/secrets"
)

// Scrubber removes secrets from everything that leaves the process, such as messages, errors and log lines. It is safe
// for concurrent use. A nil Scrubber removes nothing.
type Scrubber struct{ set atomic.Pointer[secrets.Set] }

// NewScrubber returns a Scrubber that removes the bot token, the part of the token after the colon, and further
// secrets.
func NewScrubber(token string, further ...string) *Scrubber {
	if _, key, ok := strings.Cut(token, ":"); ok {
		further = append(further, key)
	}
	s := &Scrubber{}
	s.set.Store(secrets.NewSet(append(further, token)...))
	return s
}

// Add adds a secret.
func (s *Scrubber) Add(secret string) {
	for {
		before := s.set.Load()
		if s.set.CompareAndSwap(before, before.With(secret)) {
			return
		}
	}
}

// Secrets returns all secrets.
func (s *Scrubber) Secrets() *secrets.Set {
	if s == nil {
		return nil
	}
	return s.set.Load()
}

// String returns text without secrets.
func (s *Scrubber) String(text string) string { return s.Secrets().String(text) }

// Text returns t without secrets. It replaces each secret by dots of the same length in UTF-16 units, so that entities
// stay valid.
func (s *Scrubber) Text(t render.Text) render.Text {
	if s == nil {
		return t
	}
	for _, secret := range s.Secrets().Words() {
		if strings.Contains(t.Text, secret) {
			mask := strings.Repeat("•", len(utf16.Encode([]rune(secret))))
			t.Text = strings.ReplaceAll(t.Text, secret, mask)
		}
	}
	for i, e := range t.Entities {
		if clean := s.String(e.URL); clean != e.URL {
			t.Entities = slices.Clone(t.Entities)
			t.Entities[i].URL = strings.ReplaceAll(clean, secrets.Removed, "[secret]") // a URL must not contain spaces
		}
	}
	return t
}

// Blocks is like Text, for the blocks of a rich message. It returns a copy.
func (s *Scrubber) Blocks(blocks []render.Block) []render.Block {
	if s == nil {
		return blocks
	}
	out := slices.Clone(blocks)
	for i := range out {
		b := &out[i]
		b.Text, b.Blocks, b.Language = s.Text(b.Text), s.Blocks(b.Blocks), s.String(b.Language)
		b.Items, b.Rows = slices.Clone(b.Items), slices.Clone(b.Rows)
		for j := range b.Items {
			b.Items[j].Blocks = s.Blocks(b.Items[j].Blocks)
		}
		for j := range b.Rows {
			b.Rows[j] = slices.Clone(b.Rows[j])
			for k := range b.Rows[j] {
				b.Rows[j][k].Text = s.Text(b.Rows[j][k].Text)
			}
		}
	}
	return out
}

// Handler returns a slog.Handler that removes secrets from messages and attributes, and passes the records to next.
func (s *Scrubber) Handler(next slog.Handler) slog.Handler { return scrubHandler{s, next, nil} }

// scrubHandler implements Handler. It removes secrets from the attributes of a logger only when it writes a record,
// because most loggers with attributes write no records.
type scrubHandler struct {
	scrub *Scrubber
	next  slog.Handler
	attrs []slog.Attr // attributes of the logger; may contain secrets
}

func (h scrubHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h scrubHandler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.scrub.String(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.cleaned().Handle(ctx, clean)
}

func (h scrubHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = slices.Concat(h.attrs, attrs)
	return h
}

func (h scrubHandler) WithGroup(name string) slog.Handler {
	return scrubHandler{h.scrub, h.cleaned().WithGroup(name), nil}
}

// cleaned returns the next handler with the logger's attributes, without secrets.
func (h scrubHandler) cleaned() slog.Handler {
	if len(h.attrs) == 0 {
		return h.next
	}
	clean := make([]slog.Attr, len(h.attrs))
	for i, a := range h.attrs {
		clean[i] = h.attr(a)
	}
	return h.next.WithAttrs(clean)
}

func (h scrubHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.scrub.String(v.String()))
	case slog.KindGroup:
		group := make([]slog.Attr, 0, len(v.Group()))
		for _, sub := range v.Group() {
			group = append(group, h.attr(sub))
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	case slog.KindAny:
		text := fmt.Sprintf("%+v", v.Any())
		if clean := h.scrub.String(text); clean != text {
			return slog.String(a.Key, clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}
