package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/internal/attach/wire"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/internal/testprogram"
	"ductor/orchestrator"
)

// twoEnds is a conversation that its owner uses in a terminal and on a phone at once.
type twoEnds struct {
	o    *ordeal
	desk *attached
	n    int // prompts so far
	// killed is set once ductor was killed: a message that was on its way may be missing in the chat.
	killed bool
	deeds  []string
}

// Prompts, decisions, aborts and restarts of ductor at both ends, in random order: in the end both show the same
// conversation, which is the one in the store.
func TestBothEndsShowTheSameConversation(t *testing.T) {
	tries := 2
	if testprogram.Long() {
		tries = 100
	}
	for seed := range tries {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			town := surroundings(t, nil)
			town.permission = "ask"
			o := town.ordeal(uint64(seed))
			e := &twoEnds{o: o, desk: o.attach()}
			defer func() {
				if t.Failed() {
					t.Logf("what happened: %s", strings.Join(e.deeds, ", "))
				}
			}()
			for range 7 {
				e.step()
			}
			e.settle()
			e.compare()
		})
	}
}

// step does something at random.
func (e *twoEnds) step() {
	switch e.o.random.IntN(8) {
	case 0, 1:
		e.prompt("desk", "")
	case 2:
		e.prompt("phone", "")
	case 3, 4:
		e.prompt([]string{"desk", "phone"}[e.o.random.IntN(2)], "asks")
	case 5:
		e.abort()
	case 6:
		e.deeds = append(e.deeds, "restart")
		e.killed = true
		e.o.strike(0)
	case 7:
		e.desk.disconnect()
	}
	time.Sleep(time.Duration(e.o.random.IntN(60)) * time.Millisecond) // the next step meets another state
	if e.o.random.IntN(2) == 0 {
		e.decide()
	}
}

// answer returns the words of an answer.
func answer(n int) string { return fmt.Sprintf("answer number %d has come to its end", n) }

func (e *twoEnds) prompt(end, kind string) {
	e.n++
	e.deeds = append(e.deeds, fmt.Sprint("prompt ", e.n, " at the ", end, " ", kind))
	script := fmt.Sprintf(`prompt-%d [[start]] [[text %q delay=4ms chunk=4]]`, e.n, answer(e.n))
	if kind == "asks" {
		script = fmt.Sprintf(`prompt-%d [[start]] [[ask cmd="echo %[1]d"]] [[text %[2]q delay=2ms chunk=8]]`, e.n,
			answer(e.n))
	}
	if end == "phone" {
		e.o.say("%s", script)
		return
	}
	e.desk.ask(wire.Request{Prompt: &wire.Prompt{ID: fmt.Sprint("p", e.n), Text: script}})
}

func (e *twoEnds) abort() {
	end := e.o.random.IntN(2)
	e.deeds = append(e.deeds, fmt.Sprint("abort at ", end))
	if end == 0 {
		e.o.say("/abort")
	} else {
		e.desk.send(wire.Request{Abort: &wire.Abort{ID: fmt.Sprint("a", time.Now().UnixNano())}})
	}
}

// decide decides all open approvals, at either end or at both at once.
func (e *twoEnds) decide() { e.decideAt(func() int { return 1 + e.o.random.IntN(3) }) }

// decideAt decides all open approvals, at the ends that at returns: 1 is the terminal, 2 the phone, 3 both at once.
func (e *twoEnds) decideAt(at func() int) {
	e.desk.mu.Lock()
	var open []wire.Approval
	for _, a := range e.desk.shown.approvals {
		if a.State == wire.ApprovalOpen {
			open = append(open, a)
		}
	}
	e.desk.mu.Unlock()
	for _, a := range open {
		ends := at()
		e.deeds = append(e.deeds, fmt.Sprint("decide at ", ends))
		var deciding sync.WaitGroup
		if ends&1 != 0 {
			deciding.Go(func() {
				choice := wire.AllowOnce
				if strings.HasSuffix(a.ID, "A") {
					choice = wire.Deny
				}
				e.desk.ask(wire.Request{Decide: &wire.Decide{ID: "d" + a.ID, Approval: a.ID, Choice: choice}})
			})
		}
		if ends&2 != 0 {
			deciding.Go(e.denyAtPhone)
		}
		deciding.Wait()
	}
}

// denyAtPhone presses the buttons of all approvals. The terminal may be first.
func (e *twoEnds) denyAtPhone() {
	for _, m := range e.o.chat.View().FromBot() {
		for _, button := range []string{"⛔ Deny", showIt} {
			if m.HasButton(button) {
				_, _ = e.o.pressAmidKills(m, button)
			}
		}
	}
}

// pressAmidKills presses a button. If ductor is killed before it answers the press, no answer ever arrives.
func (o *ordeal) pressAmidKills(m telegram.Message, button string) (telegram.Answer, error) {
	ctx, cancel := context.WithTimeout(o.soon(), patience/6)
	defer cancel()
	return o.chat.Person().Press(ctx, m, button)
}

// showIt is the button of a notice: ductor was killed while it sent an approval.
const showIt = "👁 Show it"

// settle decides, and waits until ductor has handled everything that was sent from both ends, and the terminal shows
// the end of each turn.
func (e *twoEnds) settle() {
	e.o.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		e.decide()
		e.desk.mu.Lock()
		idle := e.desk.conn != nil && len(e.desk.waiting) == 0
		e.desk.mu.Unlock()
		idle = idle && e.o.isAtRest()
		turns := e.stored()
		e.desk.mu.Lock()
		for _, turn := range turns {
			_, known := e.desk.shown.entries[string(turn.ID)]
			idle = idle && known
		}
		for _, entry := range e.desk.shown.entries {
			idle = idle && entry.State.Over()
		}
		for _, a := range e.desk.shown.approvals {
			idle = idle && a.State != wire.ApprovalOpen
		}
		e.desk.mu.Unlock()
		if idle {
			return
		}
		if time.Now().After(deadline) {
			e.o.fatal(fmt.Errorf("it does not come to rest: %s", e.desk))
		}
	}
}

// isAtRest reports whether ductor has handled all updates, and no turn waits or runs.
func (o *ordeal) isAtRest() (rest bool) {
	o.t.Helper()
	if o.srv.PendingUpdates() > 0 {
		return false
	}
	o.readStore(func(db *store.DB) error {
		updates, err := db.PendingUpdates(o.soon(), 0, 1)
		if err != nil {
			return err
		}
		turns, err := db.OpenTurns(o.soon())
		rest = len(updates)+len(turns) == 0
		return err
	})
	return rest
}

// readStore calls read with ductor's database.
func (o *ordeal) readStore(read func(*store.DB) error) {
	o.t.Helper()
	db, err := store.OpenReadOnly(o.soon(), o.database(), store.Options{})
	if err != nil {
		o.t.Fatal(err)
	}
	defer db.Close()
	if err := read(db); err != nil {
		o.t.Fatal(err)
	}
}

// stored returns the turns of the conversation.
func (e *twoEnds) stored() (turns []orchestrator.Turn) {
	e.o.t.Helper()
	e.o.readStore(func(db *store.DB) (err error) {
		turns, err = db.RecentTurns(e.o.soon(), orchestrator.ConversationID{Chat: owner}, 100)
		return err
	})
	return turns
}

// compare checks that the terminal, the chat and the store have the same turns.
func (e *twoEnds) compare() {
	e.o.t.Helper()
	e.awaitNoApproval()
	var ran []string
	for _, turn := range e.stored() {
		ran = append(ran, string(turn.ID))
		e.desk.mu.Lock()
		shown, known := e.desk.shown.entries[string(turn.ID)]
		e.desk.mu.Unlock()
		if !known || shown.State != wire.State(turn.State) || shown.Answer != turn.Outcome.Text ||
			shown.Prompt != turn.Prompt.Text {
			e.o.t.Errorf("the store has %s %s %q, and the terminal shows %v %s %q", turn.ID, turn.State,
				turn.Outcome.Text, known, shown.State, shown.Answer)
		}
		if turn.State == orchestrator.TurnDone && turn.Outcome.Text != "" {
			e.awaitOnce(turn.Outcome.Text)
		}
	}
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	for id, entry := range e.desk.shown.entries {
		if entry.State != wire.StateCancelled && !slices.Contains(ran, id) {
			e.o.t.Errorf("the terminal shows %s %s, which the store does not have", id, entry.State)
		}
	}
	for n := 1; n <= e.n; n++ {
		if r, typed := e.desk.replies[fmt.Sprint("p", n)]; typed {
			if count := e.typed(n); r.Error != "" || count > 1 || count == 0 && !e.killed {
				e.o.t.Errorf("the chat shows prompt %d of the terminal %d times; the reply was %+v", n, count, r)
			}
		}
	}
}

// awaitNoApproval waits until no message in the chat offers a decision. If a message was on its way when ductor was
// killed, ductor cannot edit it before the user presses one of its buttons.
func (e *twoEnds) awaitNoApproval() {
	e.o.t.Helper()
	eventually(e.o.t, "the buttons of decided approvals to go", func() bool {
		if e.killed {
			e.denyAtPhone()
		}
		return !slices.ContainsFunc(e.o.chat.View().FromBot(), func(m telegram.Message) bool {
			return m.HasButton("⛔ Deny")
		})
	})
}

// awaitOnce waits until the chat shows an answer, and checks that it shows it once. If ductor was killed while it sent
// a part of the answer, two messages may split it at any letter, without the space between them. If a part is missing,
// the user presses "Show again", which shows everything once more.
func (e *twoEnds) awaitOnce(text string) {
	e.o.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		switch count := e.shown(text); {
		case count == 1, count > 1 && len(e.o.again) > 0:
			return
		case count > 1:
			e.o.fatal(fmt.Errorf("the chat shows %q %d times: %s", text, count, said(e.o.chat.View())))
		case time.Now().After(deadline):
			e.o.fatal(fmt.Errorf("the chat does not show %q: %s", text, said(e.o.chat.View())))
		}
		e.o.askAgain()
	}
}

// askAgain presses each "Show again".
func (o *ordeal) askAgain() {
	for _, m := range o.chat.View().FromBot() {
		if m.HasButton(showAgain) && !o.again[m.ID] {
			a, err := o.pressAmidKills(m, showAgain)
			o.again[m.ID] = err == nil && a.Text == "" // otherwise the turn has not ended yet
		}
	}
}

// shown counts an answer in the chat.
func (e *twoEnds) shown(text string) int {
	var shown strings.Builder
	for _, m := range e.o.chat.View().FromBot() {
		if !isTyped(m) {
			shown.WriteString(m.Text)
		}
	}
	return strings.Count(withoutSpaces(shown.String()), withoutSpaces(text))
}

func withoutSpaces(text string) string { return strings.Join(strings.Fields(text), "") }

// typed returns how often the chat shows a prompt of the terminal.
func (e *twoEnds) typed(n int) (count int) {
	for _, m := range e.o.chat.View().FromBot() {
		if isTyped(m) && strings.Contains(m.Text, fmt.Sprintf("prompt-%d ", n)) {
			count++
		}
	}
	return count
}
