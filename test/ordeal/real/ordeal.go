package real

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
	"ductor/test/ordeal/spoil"
)

// ordeal runs one scenario in a world and collects the evidence.
type ordeal struct {
	*world
	job      Job
	places   *places
	report   Report
	waiting  sync.WaitGroup // goroutines that will cause or end a fault
	pressing sync.WaitGroup // goroutines that wait for the answer to a button
	ending   sync.Mutex     // held while ductor ends and starts again
	spoiled  *spoil.Telegram

	mu       sync.Mutex
	healed   chan struct{} // closed when all faults must end
	evidence judge.Evidence
	prompts  int // number of prompts that users have sent
	step     int
	again    map[messageKey]bool // messages on which settle has already pressed a button
}

func newOrdeal(w *world, job Job, s scenario.Scenario) *ordeal {
	o := &ordeal{
		world: w, job: job, places: newPlaces(w.srv, s.Options), healed: make(chan struct{}),
		spoiled: &spoil.Telegram{Server: w.srv}, again: map[messageKey]bool{},
		evidence: judge.Evidence{Scenario: s, Began: time.Now(), Secret: w.secrets[secretOfAgents]},
		report:   Report{Script: s.String(), Conditions: job.Conditions},
	}
	w.died = func(at time.Time) {
		o.note("ductor ended by itself: %v", w.daemon.cmd.ProcessState)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.evidence.Stops = append(o.evidence.Stops, judge.Stop{How: scenario.Crash, At: at, Up: at})
	}
	return o
}

// trouble adds an error, such as a failed start of ductor, to evidence.Troubles. It ignores a nil error.
func (o *ordeal) trouble(err error) {
	if err == nil {
		return
	}
	o.note("trouble: %v", err)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.evidence.Troubles = append(o.evidence.Troubles, err.Error())
}

// run plays the scenario, waits until all work is done, ends ductor, and lets the judge check the evidence.
func (o *ordeal) run() {
	o.line.set(o.job.Conditions.Line)
	if n := o.job.Conditions.Load; n > 0 {
		end, err := busy(n)
		o.trouble(err)
		o.unload = end
	}
	o.trouble(o.awaitPoll())
	for i, step := range o.evidence.Scenario.Steps {
		o.mu.Lock()
		o.step = i
		o.mu.Unlock()
		o.note("step %d: %s", i, lineOf(step))
		o.perform(step)
	}
	o.heal()
	o.unload()
	o.step = len(o.evidence.Scenario.Steps)
	o.trouble(o.settle(patience, true))
	o.pressing.Wait()
	o.gather()
	o.trouble(o.stop())
	o.gatherLeftovers()
	o.judge()
}

// judge lets the judge check the evidence, and prints the violations.
func (o *ordeal) judge() {
	found := judge.Judge(o.evidence)
	o.report.Run.Add(o.evidence, found)
	for _, name := range o.job.Conditions.names() {
		o.report.Run.Faults[name]++
	}
	for _, v := range found {
		o.note("violation: %v", v)
	}
	if len(found) > 0 {
		o.writeChats()
	}
}

// writeChats writes the contents of all chats to a file, to find the cause of a violation.
func (o *ordeal) writeChats() {
	var text strings.Builder
	for _, c := range o.evidence.Chats {
		fmt.Fprintf(&text, "==== %s %d\n", c.Name, c.ID)
		for _, m := range c.History {
			fmt.Fprintf(&text, "-- %d of %s in %d, reply to %d, %s, deleted %v, %v\n", m.ID, m.From.Name, m.Topic,
				m.ReplyTo, m.Date.Format("15:04:05.000"), m.Deleted, m.Keyboard)
			for _, v := range m.Versions {
				fmt.Fprintf(&text, "%s %q\n", v.At.Format("15:04:05.000"), v.Text)
			}
		}
	}
	for _, c := range o.evidence.Calls {
		if c.Method != "getUpdates" {
			fmt.Fprintf(&text, "%s %s %d/%d %v %s %s %.300q\n", c.Done.Format("15:04:05.000"), c.Method, c.Chat,
				c.Message, c.OK, c.Fault, c.Description, c.Params["text"])
		}
	}
	for _, p := range o.evidence.Presses {
		fmt.Fprintf(&text, "%s %s presses %q of %d/%d: %q %v\n", p.At.Format("15:04:05.000"), p.By, p.Label, p.Chat,
			p.Message, p.Answer, p.Answered)
	}
	o.trouble(os.WriteFile(filepath.Join(o.job.Dir, "chats.txt"), []byte(text.String()), 0o600))
}

func (o *ordeal) perform(step scenario.Step) {
	switch step := step.(type) {
	case scenario.Wait:
		time.Sleep(step.For)
	case scenario.Settle: // may fail, because a fault can delay work for a long time
		if err := o.settle(2*mostWait, false); err != nil {
			o.note("%v", err)
		}
	case scenario.Heal:
		o.heal()
	case scenario.Say, scenario.Send, scenario.Edit, scenario.Reply, scenario.Type, scenario.Press, scenario.PressAny:
		o.act(step)
	default:
		o.trouble(o.fault(step))
	}
}

func lineOf(step scenario.Step) string {
	s := scenario.Scenario{Steps: []scenario.Step{step}}
	return strings.TrimSpace(strings.TrimPrefix(s.String(), "seed 0\n"))
}
