package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"ductor/internal/sim/telegram"
)

// watcher sees every successful call of the bot, as soon as the call has ended.
type watcher struct {
	mu      sync.Mutex
	waiting []*expected
}

// expected is a call that a benchmark waits for.
type expected struct {
	what  string
	chat  telegram.ChatID
	match func(telegram.Call) bool
	seen  chan telegram.Call // capacity 1
}

func (w *watcher) call(c telegram.Call) {
	if !c.OK {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(e *expected) bool {
		if e.chat != c.Chat || !e.match(c) {
			return false
		}
		e.seen <- c
		return true
	})
}

// expect starts to wait for the next call in a chat for which match returns true. It does not block.
func (s *setup) expect(what string, chat *telegram.Chat, match func(telegram.Call) bool) *expected {
	e := &expected{what, chat.ID(), match, make(chan telegram.Call, 1)}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	s.watch.waiting = append(s.watch.waiting, e)
	return e
}

func (s *setup) await(ctx context.Context, e *expected) (telegram.Call, error) {
	select {
	case c := <-e.seen:
		return c, nil
	case <-s.ended.Done():
		return telegram.Call{}, s.explain(fmt.Errorf("%s ended before %s", s.bot, e.what))
	case <-ctx.Done():
		return telegram.Call{}, s.explain(fmt.Errorf("wait for %s in chat %d: %w; the chat shows:\n%s", e.what, e.chat,
			context.Cause(ctx), s.chat(int(e.chat)).Transcript()))
	}
}

// shows returns a function that recognizes calls whose message contains a word of the answer. The function ignores
// messages that quote the prompt, because the prompt contains the word, too.
func shows(word string) func(telegram.Call) bool {
	return func(c telegram.Call) bool {
		text := c.Params["text"]
		return strings.Contains(text, word) && !strings.Contains(text, "[[")
	}
}

// ends returns a function that recognizes the last call of an answer. ductor's last call shows a footer. The minimal
// bot's last call is its only edit of the answer. If word is not empty, the message must also contain the word.
func (s *setup) ends(word string) func(telegram.Call) bool {
	return func(c telegram.Call) bool {
		if !shows(word)(c) {
			return false
		}
		if s.bot == floorBot {
			return c.Method == "editMessageText"
		}
		return hasFooter(c.Params["text"])
	}
}

// hasFooter reports whether the last line is a footer, such as "sonnet · 1.2s". A line about a tool is similar, but
// begins with a symbol.
func hasFooter(text string) bool {
	text = strings.TrimSpace(text)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return strings.Contains(last, " · ") && strings.HasSuffix(last, "s") && last[0] < utf8.RuneSelf
}
