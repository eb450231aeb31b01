package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/internal/testprogram"
)

// interleaving is a random sequence of prompts, decisions, aborts and restarts at a phone and a terminal.
type interleaving struct {
	o       *ordeal
	desk    *atTerminal
	answers []string // that may have been given
	prompts int
	log     []string
}

func (i *interleaving) either(at string) bool {
	phone := i.o.random.IntN(2) == 0
	i.log = append(i.log, at+map[bool]string{true: " at the phone", false: " at the terminal"}[phone])
	return phone
}

// prompt sends a prompt from either end.
func (i *interleaving) prompt(before string) {
	i.prompts++
	answer := fmt.Sprintf("answer %d", i.prompts)
	i.answers = append(i.answers, answer)
	text := fmt.Sprintf(`%s [[tool cmd="sleep 0.0%d"]] [[text "%s"]]`, before, i.o.random.IntN(10), answer)
	if i.either(answer) {
		i.o.say("%s", text)
	} else {
		i.desk.enter(text)
	}
}

// decide waits for an approval, and decides it at either end, or at both.
func (i *interleaving) decide() {
	i.prompt(`[[start]] [[ask cmd="true"]]`)
	i.desk.shows("Tab: read and decide")
	asked := i.o.awaitButton("⛔ Deny")
	at := i.o.random.IntN(3)
	i.log = append(i.log, fmt.Sprint("decide ", at))
	if at != 0 {
		_, _ = i.desk.tty.WriteString("\t")
		i.desk.shows("Deny with a reason")
		i.desk.enter("")
	}
	if at != 1 {
		_, _ = i.o.chat.Person().Press(i.o.soon(), asked, "⛔ Deny") // the terminal may be first
	}
	i.desk.shows("!Tab: read", "!Deny with a reason")
	i.o.awaitNoButton("⛔ Deny")
}

func (i *interleaving) step() {
	switch n := i.o.random.IntN(12); {
	case n < 7:
		i.prompt("")
	case n < 9:
		i.settle() // an abort would withdraw the approval
		i.decide()
	case n < 11:
		before := i.o.shown("Permissions:")
		if i.either("abort") {
			i.o.say("/abort")
			i.o.say("/status")
		} else {
			i.desk.enter("/abort")
			i.desk.enter("/status")
		}
		// the answer to /status shows that the abort has arrived
		if _, err := i.o.chat.Await(i.o.soon(), func(telegram.View) bool {
			return i.o.shown("Permissions:") > before
		}); err != nil {
			i.o.fatal(err)
		}
	default:
		i.log = append(i.log, "restart")
		i.o.daemon.kill()
		i.prompt("")
		i.o.rise()
	}
}

// settle waits until ductor has handled everything that was sent from both ends.
func (i *interleaving) settle() {
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		i.desk.shows("!reconnecting", "!sending:", "!next:", "!working")
		if i.o.isAtRest() {
			return
		}
		if time.Now().After(until) {
			i.o.fatal(errors.New("it does not come to rest"))
		}
	}
}

// check compares both ends.
func (i *interleaving) check() {
	i.o.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		wrong := ""
		for _, answer := range i.answers {
			here, there := rowsOf(i.desk.screen.String(), answer), 0
			for _, m := range i.o.chat.View().FromBot() {
				there += rowsOf(m.Text, answer)
			}
			if there < here { // its message was on its way when ductor was killed
				i.o.askAgain()
			}
			if here > 1 || there > 1 && len(i.o.again) == 0 || (here > 0) != (there > 0) {
				wrong = fmt.Sprintf("%q is shown %d times in the terminal, %d in the chat", answer, here, there)
			}
		}
		if wrong == "" {
			i.answers = nil
			return
		}
		if time.Now().After(until) {
			i.o.t.Fatalf("%s after %q:\n%s", wrong, i.log, i.desk.screen.String())
		}
	}
}

// rowsOf counts the lines of a text that are an answer.
func rowsOf(text, answer string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == answer {
			n++
		}
	}
	return n
}

// A phone and a terminal prompt, decide, abort and see restarts in a random order. Both show the same conversation.
func TestAttachShowsTheSameAsThePhoneInRandomOrders(t *testing.T) {
	rounds := 2
	if testprogram.Long() {
		rounds = 100
	}
	town := surroundings(t, nil)
	town.permission = "ask"
	o := town.ordeal(34)
	i := &interleaving{o: o, desk: o.attachAt(100, 150)}
	i.o.random = rand.New(rand.NewPCG(34, 34))
	for round := range rounds {
		i.log = []string{fmt.Sprint("round ", round)}
		clear(o.again)
		for range 3 + i.o.random.IntN(4) {
			i.step()
		}
		i.settle()
		i.check()
	}
}

// A terminal shows an answer while it grows, also if each call to Telegram hangs.
func TestAttachInATerminalWaitsForNoCall(t *testing.T) {
	o := surroundings(t, nil).ordeal(35)
	desk := o.attachAt(100, 40)
	slow := o.srv.Inject(telegram.Fault{When: telegram.Writes, Delay: time.Hour, Times: telegram.Always})
	o.say(`[[start]] [[text "the first words"]] [[tool cmd="until test -e go; do sleep 0.02; done"]] ` +
		`[[text "the last words"]]`)
	desk.shows("\nthe first words", "!\nthe last words")
	o.makeFile("go", nil)
	desk.shows("\nthe last words", "!working")
	slow.Remove()
	o.awaitAnswer("the last words")
}
