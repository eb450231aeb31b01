package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/internal/testprogram"
)

// Ductor is killed at each call of a turn that asks, and the next ductor at each of its calls. Telegram has the call or
// never gets it. The user decides before the kill or right after the restart, at the terminal, at the phone or at both.
// No two messages ever show the tool or the answer, unless the user asks for them again.
func TestAKillAtAnyCallOfAnApprovedTurnDoublesNoAnswer(t *testing.T) {
	town := surroundings(t, nil)
	town.permission = "ask"
	o := town.ordeal(1)
	e := &twoEnds{o: o, desk: o.attach(), killed: true}
	if !testprogram.Long() {
		e.killAtCalls(3, telegram.NoFault, 0)
		return
	}
	for ends := 1; ends <= 3; ends++ {
		for _, kind := range []telegram.FaultKind{telegram.NoFault, telegram.Hang} {
			deaths := 2
			for first := 0; deaths > 0; first++ {
				deaths = 2
				for second := 0; deaths == 2; second++ {
					deaths = e.killAtCalls(ends, kind, first, second)
				}
			}
		}
	}
}

// killAtCalls prompts, and kills ductor at its first call after skips[0] others, the next ductor likewise, and so on.
// It decides at the given ends. It returns how often ductor was killed before the turn had ended.
func (e *twoEnds) killAtCalls(ends int, kind telegram.FaultKind, skips ...int) (deaths int) {
	e.o.t.Helper()
	clear(e.o.again)
	e.deeds = nil
	e.prompt("phone", "asks")
	for _, skip := range skips {
		shows := func(c telegram.Call) bool { return telegram.Writes(c) && c.Method != "sendChatAction" }
		call := e.o.srv.Inject(telegram.Fault{Kind: kind, Skip: skip, Late: time.Hour, When: shows})
		if e.awaitEnd(ends, func() bool { return call.Hits() > 0 }); call.Hits() == 0 {
			call.Remove()
			break
		}
		deaths++
		e.o.daemon.kill()
		call.Remove()
		e.o.rise()
	}
	e.awaitEnd(ends, func() bool { return false })
	e.awaitNoApproval()
	e.awaitOnce(answer(e.n))
	for _, part := range []string{fmt.Sprintf("Run echo %d", e.n), answer(e.n)} {
		if shown := e.everShown(part); shown > 1+len(e.o.again) {
			e.o.t.Errorf("kills %d %q %v: %d messages have shown %q: %s", ends, kind, skips, shown, part,
				said(e.o.chat.View()))
		}
	}
	return deaths
}

// everShown returns how many messages have shown a part of an answer.
func (e *twoEnds) everShown(part string) (messages int) {
	for _, m := range e.o.chat.History() {
		if m.From.Bot && slices.ContainsFunc(m.Versions, func(v telegram.Version) bool {
			return strings.Contains(v.Text, part)
		}) {
			messages++
		}
	}
	return messages
}

// awaitEnd decides until the chat shows the outcome of the last prompt, or until is returns true.
func (e *twoEnds) awaitEnd(ends int, is func() bool) {
	e.o.t.Helper()
	db := openDatabase(e.o.t, e.o.database())
	defer db.Close()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		e.decideAt(func() int { return ends })
		var delivered int
		err := db.QueryRow(`SELECT count(*) FROM turns WHERE delivered = 1`).Scan(&delivered)
		if err == nil && delivered == e.n {
			return
		}
		if time.Now().After(deadline) {
			e.o.fatal(errors.New("the turn does not end"))
		}
	}
}
