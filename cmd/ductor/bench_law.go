package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"ductor/internal/sim/telegram"
)

const strictTools = 20

// strictFigures are about an answer in a chat that allows one call a second after a burst of three.
func strictFigures(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.newSite(siteOptions{name: "strict", limits: telegram.StrictLimits()})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, err
	}
	chat := s.private(1)
	var prompt strings.Builder
	for i := range strictTools {
		fmt.Fprintf(&prompt, `[[text "Step %d begins.\n\n"]] [[tool cmd="sleep 0.3; echo tool-%d-ran"]] `, i, i)
	}
	prompt.WriteString(`[[text "All steps are done."]]`)
	sent := time.Now()
	chat.Person().Send(chat, prompt.String())
	if err := s.awaitAnswers(ctx, chat, 1); err != nil {
		return nil, err
	}
	took := time.Since(sent)
	text := everyText(chat.View())
	missing := 0
	for i := range strictTools {
		missing += once(text, fmt.Sprintf("Step %d begins.", i)) + once(text, fmt.Sprintf("echo tool-%d-ran", i))
	}
	missing += once(text, "All steps are done.")
	refused := len(s.srv.Calls(telegram.InChat(chat.ID()), telegram.Failed))
	return []figure{{
		what: "20 tool calls at 1 call a second, burst 3", law: true, met: missing == 0, target: "arrives whole",
		measured: fmt.Sprintf("%d of 41 pieces, %.1f s, %d refused", 2*strictTools+1-missing, took.Seconds(), refused),
	}}, nil
}

// once is 0 if part is in text exactly once, 1 if not.
func once(text, part string) int {
	if strings.Count(text, part) == 1 {
		return 0
	}
	return 1
}

// downFigures are about messages that come while ductor is dead.
func downFigures(ctx context.Context, b *bench) ([]figure, error) {
	const count = 3
	s, err := b.newSite(siteOptions{name: "down", rates: noRates})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	chat := s.private(1)
	chat.Person().Send(chat, `[[text "Before."]]`)
	if err := s.awaitAnswers(ctx, chat, 1); err != nil {
		return nil, err
	}
	s.signal(syscall.SIGKILL)
	for i := range count {
		chat.Person().Send(chat, fmt.Sprintf(`[[text "Answer %d."]]`, i))
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	if err := s.awaitAnswers(ctx, chat, count+1); err != nil {
		return nil, err
	}
	if err := pauseFor(ctx, 3*time.Second); err != nil { // what comes twice comes late
		return nil, err
	}
	wrong := 0
	text := everyText(chat.View())
	for i := range count {
		wrong += once(text, fmt.Sprintf("Answer %d.", i))
	}
	if n := answers(chat.View()); n != count+1 {
		return nil, errors.New(text)
	}
	return []figure{{
		what: "3 messages sent while ductor is down", measured: fmt.Sprintf("%d answered once", count-wrong),
		target: "3 answered, each once", met: wrong == 0, law: true,
	}}, nil
}
