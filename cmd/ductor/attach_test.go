package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/internal/attach/wire"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/internal/statesocket"
)

// What the owner types at either end appears at both, with the tools and the answers. Commands work too.
func TestATerminalAndAPhoneShareAConversation(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	desk := town.attach()
	if r := desk.say("p1", `hello [[tool cmd="echo from-the-tool"]] [[text "It is **done**."]]`); r.Error != "" {
		t.Fatalf("the reply: %+v", r)
	}
	e := desk.awaitEntry(wire.StateDone, "It is **done**.")
	if e.Turn != wire.TurnOf("p1") || !e.Terminal || e.Agent != "claude" || e.Ended.IsZero() {
		t.Errorf("the entry: %+v", e)
	}
	if len(e.Tools) != 1 || e.Tools[0].State != wire.ToolDone ||
		!strings.Contains(e.Tools[0].Output, "from-the-tool") ||
		!strings.Contains(string(e.Tools[0].Input), "echo from-the-tool") || e.Tools[0].Title != "echo from-the-tool" {
		t.Errorf("the tools: %+v", e.Tools)
	}
	card := town.awaitDone(1)
	typed := town.await("You, at the terminal:\nhello")
	if typed.ID >= card.ID || strings.Contains(card.Text, "You, at the terminal") {
		t.Errorf("the chat shows the prompt as message %d: %q, and the answer as %d: %q", typed.ID, typed.Text, card.ID,
			card.Text)
	}
	town.say(`from the phone [[text "And this too."]]`)
	e = desk.awaitEntry(wire.StateDone, "And this too.")
	if e.Terminal || !strings.HasPrefix(e.Prompt, "from the phone") {
		t.Errorf("the entry of the phone: %+v", e)
	}
	if r := desk.say("c1", "/model codex"); r.Error != "" {
		t.Errorf("the reply to a command: %+v", r)
	}
	desk.awaitNotice("You, at the terminal:\n/model codex")
	town.say("/consult codex Which lock?")
	desk.awaitNotice("In the chat:\n/consult codex Which lock?")
	desk.awaitNotice("Your next message goes to Codex")
	town.await("Your next message goes to Codex")
	town.await("You, at the terminal:\n/model codex")
	if r := desk.say("c2", "/nonsense"); !strings.Contains(r.Error, "not a command") {
		t.Errorf("the reply to an unknown command: %+v", r)
	}
	desk.say("p3", `[[start]] [[text "What came before, "]] [[tool cmd="true"]] [[text "what came after the tool."]]`)
	desk.awaitEntry(wire.StateDone, "after the tool")
	long := strings.Repeat("line after line\n", 500)
	desk.say("p2", `[[start]] [[text "I read it."]] `+long)
	if e := desk.awaitEntry(wire.StateDone, "I read it."); !strings.HasSuffix(e.Prompt, long) {
		t.Errorf("the long prompt has %d bytes", len(e.Prompt))
	}
	file := town.awaitMessage(func(m telegram.Message) bool { return m.Media != nil })
	if data, _ := town.srv.FileData(file.Media.FileID); !strings.Contains(string(data), long) || !isTyped(file) {
		t.Errorf("the chat has the long prompt as %q with %d bytes", file.Text, len(data))
	}
	again := town.attach() // a second terminal gets the same
	again.awaitEntry(wire.StateDone, "It is **done**.")
	again.awaitEntry(wire.StateDone, "And this too.")
	again.awaitNotice("Your next message goes to Codex")
	e = again.awaitEntry(wire.StateDone, "after the tool")
	if len(e.Tools) != 1 || e.Answer[:e.Tools[0].Offset] != "What came before, " {
		t.Errorf("the answer is %q with %+v", e.Answer, e.Tools)
	}
	desk.send(wire.Request{List: &wire.List{}})
	desk.await("the list", func() bool {
		return len(desk.shown.list) == 1 && desk.shown.list[0].Key == "1/0" && desk.shown.list[0].Title != ""
	})
}

// An approval and a question that are decided at one end disappear at the other at once.
func TestATerminalAndAPhoneDecide(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	desk := town.attach()
	file := filepath.Join(town.cfg.Projects.DefaultDir, "x")
	desk.say("p1", `[[start]] [[ask cmd="touch `+file+`"]] [[text "that was all"]]`)
	a := desk.awaitApproval(wire.ApprovalOpen, "touch "+file)
	if a.Asks == nil || a.Asks.Title+a.Asks.Detail != "touch "+file || len(a.Choices) < 2 {
		t.Errorf("the approval: %+v", a)
	}
	town.awaitButton("✅ Allow once")
	if r := desk.decide(a, wire.AllowOnce); r.Error != "" {
		t.Errorf("the reply: %+v", r)
	}
	if a := desk.awaitApproval(wire.ApprovalAllowed, "touch"); !a.Terminal || a.Chat || len(a.Choices) > 0 {
		t.Errorf("the decision: %+v", a)
	}
	town.awaitNoButton("✅ Allow once")
	desk.awaitEntry(wire.StateDone, "that was all")
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the allowed command did not run: %v", err)
	}

	town.say(`[[start]] [[ask cmd="touch %s-2"]] [[text "that was more"]]`, file)
	a = desk.awaitApproval(wire.ApprovalOpen, "x-2")
	town.press("⛔ Deny")
	if a := desk.awaitApproval(wire.ApprovalDenied, "x-2"); a.Terminal || !a.Chat {
		t.Errorf("the decision: %+v", a)
	}
	if r := desk.decide(a, wire.AllowOnce); !strings.Contains(r.Error, "decided already") {
		t.Errorf("the reply to a late decision: %+v", r)
	}
	desk.awaitEntry(wire.StateDone, "that was more")
	if _, err := os.Stat(file + "-2"); err == nil {
		t.Error("the denied command ran")
	}
}

// Both ends send at the same moment: both prompts run once, and both ends show both.
func TestTwoEndsSendAtOnce(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	desk := town.attach()
	for i := range 3 {
		prompt := func(end string) string {
			return fmt.Sprintf(`[[start]] [[tool cmd="echo %s-%d >> ran"]] [[text "answer to %[1]s %[2]d"]]`, end, i)
		}
		var both sync.WaitGroup
		both.Go(func() { town.say("%s", prompt("phone")) })
		if r := desk.say(fmt.Sprint("p", i), prompt("desk")); r.Error != "" {
			t.Errorf("the reply: %+v", r)
		}
		both.Wait()
		for _, end := range []string{"phone", "desk"} {
			answer := fmt.Sprintf("answer to %s %d", end, i)
			desk.awaitEntry(wire.StateDone, answer)
			town.awaitMessage(func(m telegram.Message) bool { return !isTyped(m) && rowsOf(m.Text, answer) == 1 })
		}
	}
	ran, err := os.ReadFile(filepath.Join(town.cfg.Projects.DefaultDir, "ran"))
	lines := strings.Fields(string(ran))
	slices.Sort(lines)
	if want := []string{"desk-0", "desk-1", "desk-2", "phone-0", "phone-1", "phone-2"}; !slices.Equal(lines, want) {
		t.Errorf("it ran %q, %v", lines, err)
	}
}

// Both ends decide at the same moment: one decision counts, and both ends show that one.
func TestTwoEndsDecideAtOnce(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	desk := town.attach()
	file := filepath.Join(town.cfg.Projects.DefaultDir, "x")
	for i, part := range []string{"one", "two", "three", "four"} {
		desk.say("p-"+part, `[[start]] [[ask cmd="touch `+file+part+`"]] [[text "end of `+part+`"]]`)
		a := desk.awaitApproval(wire.ApprovalOpen, file+part)
		m := town.awaitMessage(func(m telegram.Message) bool {
			return m.HasButton("⛔ Deny") && strings.Contains(m.Text, file+part)
		})
		pressed := make(chan struct{})
		go func() {
			defer close(pressed)
			_, _ = town.chat.Person().Press(town.soon(), m, "⛔ Deny")
		}()
		r := desk.decide(a, wire.AllowOnce)
		<-pressed
		desk.awaitEntry(wire.StateDone, "end of "+part)
		town.awaitDone(i + 1)
		won := r.Error == ""
		state, shown := wire.ApprovalDenied, "Denied"
		if won {
			state, shown = wire.ApprovalAllowed, "Allowed"
		}
		if a := desk.awaitApproval(state, file+part); a.Terminal != won || a.Chat == won {
			t.Errorf("%s: the terminal was told %+v, and shows %+v", part, r, a)
		}
		town.awaitMessage(func(m telegram.Message) bool {
			return strings.Contains(m.Text, shown) && strings.Contains(m.Text, file+part)
		})
		if _, err := os.Stat(file + part); (err == nil) != won {
			t.Errorf("%s: the terminal won: %v, and the command ran: %v", part, won, err == nil)
		}
	}
}

// ductor is killed and restarted in the middle of a turn. The terminal connects again and has the whole answer once. A
// prompt that it repeats runs once.
func TestATerminalOutlivesARestart(t *testing.T) {
	o := surroundings(t, nil).ordeal(1)
	desk := o.attach()
	tr := newTrial(1)
	desk.say("p1", tr.script())
	desk.awaitEntry(wire.StateRunning, "w1-20")
	// ductor never sends a message of unknown fate again
	o.awaitMessage(isTyped)
	o.awaitMessage(func(m telegram.Message) bool { // an edit is repeated, but the outcome of a send would be unknown
		return !isTyped(m) && strings.Contains(m.Text, "w1-3") && !m.Edited.IsZero()
	})
	o.daemon.kill()
	const marked = `[[start]] [[text "it ran"]] [[tool cmd="echo ran >> ran"]]`
	desk.ask(wire.Request{Prompt: &wire.Prompt{ID: "p2", Text: marked}})
	o.rise()
	e := desk.awaitEntry(wire.StateDone, tr.last)
	if strings.Join(strings.Fields(e.Answer), " ") != tr.first+" "+tr.last {
		t.Errorf("the terminal shows %q", e.Answer)
	}
	card := o.awaitMessage(func(m telegram.Message) bool {
		return !isTyped(m) && strings.Contains(m.Text, tr.first) && strings.Contains(m.Text, tr.last)
	})
	o.ranOnce(tr)
	if r := desk.reply("p2"); r.Error != "" {
		t.Errorf("the reply after the restart: %+v", r)
	}
	desk.awaitEntry(wire.StateDone, "it ran")
	desk.say("p2", marked) // as if the reply had been lost
	o.awaitDone(2)
	if r := desk.say("p3", `[[text "at last"]]`); r.Error != "" {
		t.Errorf("the reply: %+v", r)
	}
	desk.awaitEntry(wire.StateDone, "at last")
	o.awaitMessage(func(m telegram.Message) bool { return !isTyped(m) && strings.Contains(m.Text, "at last") })
	if ran, err := os.ReadFile(filepath.Join(o.cfg.Projects.DefaultDir, "ran")); string(ran) != "ran\n" {
		t.Errorf("the repeated prompt ran %q, %v", ran, err)
	}
	typed := 0
	for _, m := range o.chat.View().FromBot() {
		if isTyped(m) {
			typed++
		} else if m.ID != card.ID && strings.Contains(m.Text, tr.last) {
			t.Errorf("the chat shows the answer again: %q", m.Text)
		}
	}
	if typed != 3 {
		t.Errorf("the chat shows %d prompts of the terminal, want 3", typed)
	}
}

// isTyped reports whether a message of the bot shows what the owner typed in a terminal.
func isTyped(m telegram.Message) bool { return strings.HasPrefix(m.Text, "You, at the terminal:") }

// A terminal that does not read loses its connection. Neither the turn nor the chat waits for it.
func TestATerminalThatDoesNotReadDelaysNothing(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass"; c.Stream.MaxMessages = 3 })
	conn, err := greet(t.Context(), town.cfg.Storage.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(wire.Request{Open: &wire.Open{}}); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	for range 2 { // welcome and snapshot
		if _, err := lines.ReadBytes('\n'); err != nil {
			t.Fatal(err)
		}
	}
	town.say(`[[text n=60 size=10000]] [[text "and it ended"]]`)
	town.await("and it ended")
	town.say(`[[text "and the next one"]]`)
	town.await("and the next one")
	town.attach().awaitEntry(wire.StateDone, "and the next one")
}

// A wrong secret, a process that an agent started, and a terminal whose user was removed are refused.
func TestTerminalsThatAreRefused(t *testing.T) {
	town := surroundings(t, nil)
	o := town.ordeal(1)
	desk := town.attach() // waits until ductor serves terminals
	conn, err := greetWith(t.Context(), town.cfg.Storage.Dir, wire.Hello{Version: wire.Version, Secret: "wrong"})
	if why := refused(t, conn, err); !strings.Contains(why, "secret") {
		t.Errorf("a wrong secret: %q", why)
	}
	secret, err := statesocket.ReadSecret(town.cfg.Storage.Dir)
	if err != nil {
		t.Fatal(err)
	}
	conn, err = greetWith(t.Context(), town.cfg.Storage.Dir, wire.Hello{Version: wire.Version + 1, Secret: secret})
	if why := refused(t, conn, err); !strings.Contains(why, "different versions") {
		t.Errorf("another version: %q", why)
	}
	for _, name := range []string{wire.Socket, statesocket.SecretFile} {
		if info, err := os.Stat(filepath.Join(town.cfg.Storage.Dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}

	command := fmt.Sprintf("%s=1 %s attach -c %s </dev/null >refused 2>&1", beDuctor, clitest.Program(t), o.config)
	desk.say("p1", fmt.Sprintf(`[[start]] [[tool cmd=%q]] [[text "before"]]`, command))
	desk.awaitEntry(wire.StateDone, "before")
	why, err := os.ReadFile(filepath.Join(town.cfg.Projects.DefaultDir, "refused"))
	if err != nil || !strings.Contains(strings.ToLower(string(why)), "an agent of ductor started this program") {
		t.Errorf("an agent that attaches: %q, %v", why, err)
	}
	town.edit(o.config, "allowed_users = [1]", "allowed_users = [2]")
	if err := o.daemon.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	desk.await("a bye", func() bool { return desk.bye != nil && desk.bye.Reason == wire.ReasonRemoved })
}

// If an abort in the terminal comes while the chat still waits for an answer, the chat offers that answer. Both ends
// show how many waiting messages the abort removed.
func TestAnAbortInATerminalOffersTheAnswer(t *testing.T) {
	town := newTown(t, nil)
	desk := town.attach()
	slow := town.srv.Inject(telegram.Fault{Delay: time.Hour, Times: telegram.Always})
	desk.say("p1", `hello [[text "the whole answer"]]`)
	desk.awaitEntry(wire.StateDone, "the whole answer")
	desk.send(wire.Request{Abort: &wire.Abort{ID: "a1"}})
	if r := desk.reply("a1"); r.Error != "" {
		t.Errorf("the reply: %+v", r)
	}
	desk.awaitNotice("The rest of the answer is not sent.")
	slow.Remove()
	offer := town.await("The rest of the answer is not sent.")
	if n := town.shown("the whole answer"); n != 1 { // in the prompt
		t.Errorf("the chat shows the answer %d times", n-1)
	}
	town.pressOn(offer, showAgain)
	town.awaitMessage(func(m telegram.Message) bool { return strings.HasPrefix(m.Text, "the whole answer") })

	desk.say("p2", `[[start]] [[text "It begins."]] [[hang]]`)
	desk.awaitEntry(wire.StateRunning, "It begins.")
	desk.say("p3", `never`)
	desk.send(wire.Request{Abort: &wire.Abort{ID: "a2"}})
	desk.awaitNotice("1 waiting message will not run.")
	town.await("1 waiting message will not run.")
}

// A command that the terminal repeats, because ductor was killed before the reply, is carried out once.
func TestACommandOfATerminalRunsOnce(t *testing.T) {
	o := surroundings(t, nil).ordeal(1)
	desk := o.attach()
	desk.say("c1", "/model codex")
	desk.awaitNotice("Your next message goes to Codex")
	eventually(t, "the answer in the chat", func() bool { return o.shown("Your next message goes to Codex") == 1 })
	desk.ask(wire.Request{Command: &wire.Command{ID: "c2", Text: "/permissions plan"}})
	o.daemon.kill() // perhaps before the command, perhaps after it
	o.rise()
	if r := desk.reply("c2"); r.Error != "" {
		t.Errorf("the reply: %+v", r)
	}
	desk.awaitNotice("plan: reads and plans")
	desk.say("c1", "/model codex") // again
	desk.say("p1", `[[start]] [[text "and on"]]`)
	if e := desk.awaitEntry(wire.StateDone, "and on"); e.Agent != "codex" {
		t.Errorf("the entry: %+v", e)
	}
	for _, part := range []string{"/model codex", "Your next message goes to Codex", "/permissions plan"} {
		if n := o.shown(part); n > 1 || n == 0 && part != "/permissions plan" {
			t.Errorf("the chat shows %q %d times", part, n)
		}
	}
	o.awaitIdle()
	if r := desk.say("c3", "/abort"); !strings.Contains(r.Error, "othing is running") {
		t.Errorf("an abort of nothing: %+v", r)
	}
}
