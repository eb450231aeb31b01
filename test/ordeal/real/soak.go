package real

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/test/ordeal/scenario"
)

// sample contains the resources that ductor uses at one moment. Sizes are in bytes.
type sample struct {
	At                             time.Duration
	Turns                          int
	Ductor, Runner                 measures
	Processes                      int // number of agents and of their child processes
	Database, WAL, Spool, Journals int64
}

// soakOptions returns the options for a soak: all agents, two private chats and a forum.
func soakOptions() scenario.Options {
	return scenario.Options{Agents: agentNames[:],
		Chats: []scenario.Chat{{Name: "lab", Kind: scenario.Forum, Topics: []string{"red", "blue", "green"}}}}
}

// samplesOfSoak is the number of samples in a soak of any length.
const samplesOfSoak = 60

// soak lets users work for a long time without faults, and measures ductor's resources. The resources must not grow
// after the first tenth of the time. At the end, the judge checks the evidence of the whole soak.
func (o *ordeal) soak(length time.Duration) {
	idle := o.goroutines()
	o.trouble(o.awaitPoll())
	random := rand.New(rand.NewPCG(6, o.job.Seed))
	began := time.Now()
	due := began
	for n := 1; time.Since(began) < length; n++ {
		o.work(random, n)
		o.answerAll()
		time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
		if time.Now().After(due) {
			o.report.Samples = append(o.report.Samples, o.sampleNow(time.Since(began)))
			due = due.Add(length / samplesOfSoak)
		}
	}
	o.trouble(o.settle(3*patience, true))
	agents := len(withRole(processes(), roleOfAgent))
	o.gather()
	o.evidence.Left = append(o.evidence.Left, growth(o.report.Samples)...)
	if left := o.goroutines(); left > idle+goroutinesOfAgent*agents {
		o.evidence.Left = append(o.evidence.Left,
			fmt.Sprintf("%d goroutines, and %d before the first turn; %d agents are alive", left, idle, agents))
	}
	o.trouble(o.awaitPoll())
	o.trouble(o.stop())
	o.gatherLeftovers()
	o.judge()
}

// goroutinesOfAgent is the maximum number of goroutines that ductor may have for an idle agent.
const goroutinesOfAgent = 12

// goroutines makes ductor print its goroutines, and returns their number. ductor ends after printing, so it must be
// idle.
func (o *ordeal) goroutines() int {
	o.trouble(o.awaitPoll())
	time.Sleep(2 * quiet) // wait until ductor has checked its agents
	before, _ := os.ReadFile(o.log())
	o.dump()
	after, _ := os.ReadFile(o.log())
	return strings.Count(string(after[len(before):]), "\ngoroutine ")
}

// work makes a user do something. Mostly the user sends a prompt. Sometimes the user aborts, sends a file, edits a
// message or uses a command.
func (o *ordeal) work(random *rand.Rand, n int) {
	by := []scenario.Person{scenario.Owner, scenario.Owner, scenario.Ann}[random.IntN(3)]
	in := scenario.Place("")
	if random.IntN(8) == 0 { // use the group rarely, because Telegram accepts only twenty messages a minute there
		in = []scenario.Place{"lab", "lab/red", "lab/blue", "lab/green"}[random.IntN(4)]
	}
	p := scenario.Prompt{Token: scenario.Token(fmt.Sprintf("p%d", n)), Acts: workOf(random)}
	var step scenario.Step = scenario.Say{By: by, In: in, Prompt: p}
	switch random.IntN(20) {
	case 0:
		step = scenario.Type{By: by, In: in, Text: "/abort"}
	case 1:
		step = scenario.Send{By: by, In: in, Count: 1 + random.IntN(3), Media: scenario.Document, Prompt: p}
	case 2:
		commands := []scenario.Quoted{"/status", "/usage", "/sessions", "/new", "/diff", "/model codex",
			"/model claude", "/model gemini", "/model copilot"}
		step = scenario.Type{By: by, In: in, Text: commands[random.IntN(len(commands))]}
	}
	if said, ok := scenario.PromptOf(step); ok {
		o.evidence.Scenario.Steps = append(o.evidence.Scenario.Steps, step)
		o.note("%s works on %s", by, said.Token)
	}
	o.act(step)
}

func workOf(random *rand.Rand) (acts []scenario.Act) {
	for range 1 + random.IntN(3) {
		switch random.IntN(5) {
		case 0, 1:
			acts = append(acts, scenario.Text{Words: 1 + random.IntN(200), Every: 5 * time.Millisecond})
		case 2:
			acts = append(acts, scenario.Run{For: time.Duration(random.Int64N(int64(mostWork)))})
		case 3:
			acts = append(acts, scenario.Write{File: []string{"a.txt", "b.txt", "deep/er.txt"}[random.IntN(3)]})
		case 4:
			acts = append(acts, scenario.Ask{})
		}
	}
	return append(acts, scenario.Text{Words: 1 + random.IntN(20)})
}

func (o *ordeal) sampleNow(at time.Duration) sample {
	all := processes()
	s := sample{At: at, Turns: o.prompts, Ductor: measure(o.daemon.cmd.Process.Pid),
		Processes: len(withRole(all, roleOfAgent)) + len(withRole(all, roleOfTool))}
	for _, p := range withRole(all, roleOfRunner) {
		s.Runner = measure(p.pid)
	}
	s.Database, s.WAL = sizeOf(o.database()), sizeOf(o.database()+"-wal")
	s.Spool, s.Journals = sizeOf(filepath.Join(o.state(), "outgoing")), sizeOf(filepath.Join(o.state(), "runner"))
	o.note("sample %+v", s)
	return s
}

// sizeOf returns the disk space of a file, or of all files in a directory.
func sizeOf(path string) (sum int64) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // the file was deleted in the meantime
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return sum
}

// growth finds measurements that grow during a soak. It ignores the first tenth of the samples, and divides the others
// into an early part and a late part, the last third of all samples. A measurement grows if its late median exceeds its
// early median by more than a quarter, and by more than the constant slack of the measurement. The size of the database
// may grow with each turn, but the late growth per turn must be at most about twice the early growth.
func growth(all []sample) (found []string) {
	if len(all) < 10 {
		return []string{fmt.Sprintf("only %d samples", len(all))}
	}
	early, late := all[len(all)/10:len(all)*2/3], all[len(all)*2/3:]
	middle := func(some []sample, of func(sample) int64) int64 {
		var values []int64
		for _, s := range some {
			values = append(values, of(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	perTurn := func(some []sample) int64 {
		first, last := some[0], some[len(some)-1]
		return (last.Database - first.Database) / int64(max(1, last.Turns-first.Turns))
	}
	for _, m := range []struct {
		name  string
		slack int64
		of    func(sample) int64
	}{
		{"memory of ductor", 6 << 20, func(s sample) int64 { return s.Ductor.RSS }},
		{"descriptors of ductor", 12, func(s sample) int64 { return int64(s.Ductor.Descriptors) }},
		{"threads of ductor", 6, func(s sample) int64 { return int64(s.Ductor.Threads) }},
		{"memory of the runner", 4 << 20, func(s sample) int64 { return s.Runner.RSS }},
		{"descriptors of the runner", 12, func(s sample) int64 { return int64(s.Runner.Descriptors) }},
		{"threads of the runner", 6, func(s sample) int64 { return int64(s.Runner.Threads) }},
		{"processes of agents", 6, func(s sample) int64 { return int64(s.Processes) }},
		{"log of the database", 4 << 20, func(s sample) int64 { return s.WAL }},
		{"outgoing files", 1 << 20, func(s sample) int64 { return s.Spool }},
		{"journals of runs", 1 << 20, func(s sample) int64 { return s.Journals }},
	} {
		if was, is := middle(early, m.of), middle(late, m.of); is > was+was/4 && is > was+m.slack {
			found = append(found, fmt.Sprintf("%s grew from %d to %d", m.name, was, is))
		}
	}
	if was, is := perTurn(early), perTurn(late); is > 2*was+(16<<10) {
		found = append(found, fmt.Sprintf("the database grew by %d bytes a turn, and then by %d", was, is))
	}
	return found
}
