package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/internal/runner"
	"ductor/internal/sim/telegram"
)

// ordeal is a daemon that is killed and restarted while turns run.
type ordeal struct {
	*town
	config string
	daemon *daemon
	random *rand.Rand
	// again contains the notes whose answers the test requested again, since a message may have been lost.
	again map[telegram.MessageID]bool
}

func (town *town) ordeal(seed uint64) *ordeal {
	town.t.Helper()
	o := &ordeal{town: town, config: town.writeConfig(), random: rand.New(rand.NewPCG(1, seed)),
		again: map[telegram.MessageID]bool{}}
	town.dumpStateOnFailure()
	o.rise()
	return o
}

func (o *ordeal) rise() {
	o.t.Helper()
	up := o.strikeAtStart()
	o.daemon = startDaemon(o.t, "run", "-c", o.config)
	select {
	case <-up:
	case <-time.After(patience):
		o.t.Fatal("ductor does not start")
	}
}

// strike kills ductor at a random moment of the next half second, or right after one of its calls to Telegram in that
// time. It starts ductor again after a while.
func (o *ordeal) strike(dead time.Duration) {
	o.t.Helper()
	struck := make(chan struct{}, 1)
	if o.random.IntN(2) == 0 {
		o.strikeAtCall(int64(1+o.random.IntN(4)), struck)
	}
	select {
	case <-struck:
	case <-time.After(time.Duration(o.random.IntN(500)) * time.Millisecond):
	}
	o.daemon.kill()
	time.Sleep(dead)
	o.rise()
}

// awaitWord waits until a message contains a word, even if the message is still growing.
func (town *town) awaitWord(word string) {
	town.t.Helper()
	town.awaitMessage(func(m telegram.Message) bool { return strings.Contains(m.Text, word) })
}

// awaitMessage waits for a message, and fails the test if none arrives.
func (town *town) awaitMessage(is func(telegram.Message) bool) telegram.Message {
	town.t.Helper()
	m, err := town.chat.AwaitMessage(town.soon(), is)
	if err != nil {
		town.fatal(err)
	}
	return m
}

// trial is a turn whose output shows its progress: two tools and two texts.
type trial struct {
	name, first, last string
}

func newTrial(i int) trial {
	t := trial{name: fmt.Sprintf("trial-%d", i)}
	var words []string
	for n := range 60 {
		words = append(words, fmt.Sprintf("w%d-%d", i, n))
	}
	t.first, t.last = strings.Join(words, " "), fmt.Sprintf("and that was the end of trial %d", i)
	return t
}

// script returns the trial as a script for the scripted agent or a simulated model.
func (t trial) script() string {
	return fmt.Sprintf(
		`%[1]s [[start]] [[tool cmd="echo $PPID >> %[1]s-a"]] [[text "%[2]s " delay=6ms chunk=5]] [[tool cmd="sleep 0.2; echo $PPID >> %[1]s-b"]] [[text "%[3]s" delay=6ms chunk=3]]`,
		t.name, t.first, t.last)
}

const showAgain = "👁 Show again"

// awaitWhole waits until the chat shows the whole answer, and checks that it is shown once.
func (o *ordeal) awaitWhole(t trial) {
	o.t.Helper()
	pressed := false
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		v := o.chat.View()
		if n := wholes(v, t); n == 1 || n > 1 && pressed {
			return
		} else if n > 1 {
			o.t.Fatalf("%s is shown %d times", t.name, n)
		}
		for _, m := range v.FromBot() {
			if pressed || !m.HasButton(showAgain) || o.again[m.ID] {
				continue
			}
			a, err := o.chat.Person().Press(o.soon(), m, showAgain)
			if err != nil {
				o.t.Fatal(err)
			}
			if a.Text == "" { // otherwise the turn has not ended yet, and the user presses again
				o.again[m.ID], pressed = true, true
			}
		}
		if time.Now().After(deadline) {
			o.fatal(fmt.Errorf("%s is not shown whole; the chat says\n%s", t.name, said(v)))
		}
	}
}

// wholes counts the complete answers in the chat: every word once and in order, with a footer.
func wholes(v telegram.View, t trial) (n int) {
	text := joined(v)
	end := strings.Index(text, t.last)
	for ; end >= 0; end = strings.Index(text, t.last) {
		if strings.Contains(text[:end], t.first) && len(ended(v)) > 0 {
			n++
		}
		text = text[end+len(t.last):]
	}
	return n
}

// joined returns all text of the bot, with single spaces between words, since a message may end at any word.
func joined(v telegram.View) string {
	var words []string
	for _, m := range v.FromBot() {
		words = append(words, strings.Fields(m.Text)...)
	}
	return strings.Join(words, " ")
}

func said(v telegram.View) string {
	var b strings.Builder
	for _, m := range v.FromBot() {
		fmt.Fprintf(&b, "%q %v\n", m.Text, m.Keyboard)
	}
	return b.String()
}

// ranOnce checks that each tool of the trial ran once, both with the same agent.
func (o *ordeal) ranOnce(t trial) {
	o.t.Helper()
	var pids []string
	for _, tool := range []string{"-a", "-b"} {
		b, err := os.ReadFile(filepath.Join(o.cfg.Projects.DefaultDir, t.name+tool))
		if err != nil {
			o.t.Errorf("%s: %v", t.name, err)
		}
		pids = append(pids, strings.Fields(string(b))...)
	}
	if len(pids) != 2 || pids[0] != pids[1] {
		o.t.Errorf("the tools of %s were run by %q, want twice the same process", t.name, pids)
	}
}

// runner returns the process of this town's runner.
func (o *ordeal) runner() int {
	o.t.Helper()
	infos := o.runs()
	if len(infos) == 0 {
		o.t.Fatal("no agent runs")
	}
	return infos[0].Runner
}

// anotherBuild returns options that start runners from another program.
func anotherBuild(t testing.TB) runner.Options {
	t.Helper()
	start := clitest.Runner(t)
	copied := filepath.Join(t.TempDir(), "ductor")
	raw, err := os.ReadFile(start.Program)
	if err == nil {
		err = os.WriteFile(copied, raw, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	start.Command = slices.Clone(start.Command)
	start.Command[slices.Index(start.Command, start.Program)] = copied
	start.Program = copied
	return start
}
