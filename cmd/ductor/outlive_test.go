package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/internal/runner"
	"ductor/internal/sim/telegram"
)

// trials is small in the gate. The promise was tested with 16, which is 160 kills.
var trials = flag.Int("trials", 2, "how many turns outlive five deaths of ductor each, with Claude's protocol; Codex's get half in each of its two")

// ductor is killed at random moments. The turn continues in its card, which shows each word once. The agent starts
// once, its tools run once, and the queue runs after it.
func TestATurnOutlivesDuctorKilledAtAnyMoment(t *testing.T) {
	for seed, c := range []struct {
		agent, mode string
		turns       int
	}{{"claude", "live", *trials}, {"codex", "live", *trials / 2}, {"codex", "one-shot", *trials / 2}} {
		t.Run(c.agent+" "+c.mode, func(t *testing.T) {
			const kills = 5
			turns, agent := c.turns, c.agent
			town := surroundings(t, nil)
			town.agent, town.mode = agent, c.mode
			o := town.ordeal(uint64(seed))
			var queue []trial
			for i := range turns {
				trial := newTrial(i)
				if c.mode == "one-shot" { // text of exec between two tools is not part of the answer
					trial.first = ""
				}
				o.say("%s", trial.script())
				queue = append(queue, trial)
				for range kills {
					o.strike(time.Duration(o.random.IntN(300)) * time.Millisecond)
				}
				if i%4 != 3 && i != turns-1 { // some wait in the queue while ductor dies
					continue
				}
				for _, trial := range queue {
					o.awaitWhole(trial)
					o.ranOnce(trial)
				}
				queue = nil
			}
			t.Logf("%d deaths, %d answers had to be asked for once more", turns*kills, len(o.again))
			if len(o.again) > max(turns/2, 3) {
				t.Errorf("of %d answers %d had to be asked for once more", turns, len(o.again))
			}
			_ = o.daemon.cmd.Process.Signal(syscall.SIGTERM)
			if code := o.daemon.exit(t); code != exitOK {
				t.Errorf("exit code %d after SIGTERM", code)
			}
			o.endRuns()
			checkNoProcessIn(t, o.cfg.Projects.DefaultDir)
		})
	}
}

// If an agent ends its turn while ductor is down, the next process shows the rest in one edit.
func TestWhatWasSaidWhileDuctorWasDownIsCaughtUpInOneEdit(t *testing.T) {
	o := surroundings(t, nil).ordeal(3)
	trial := newTrial(0)
	o.say("%s", trial.script())
	awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, trial.name+"-a"))
	o.awaitMessage(func(m telegram.Message) bool { // an edit is repeated, but the outcome of a send would be unknown
		return strings.Contains(m.Text, "w0-3") && !m.Edited.IsZero()
	})
	o.daemon.kill()
	awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, trial.name+"-b"))
	o.awaitPrinted(`"type":"result"`)
	before := len(o.srv.Calls())
	o.rise()
	o.awaitWhole(trial)
	o.ranOnce(trial)
	shows := slices.DeleteFunc(o.srv.Calls()[before:], func(c telegram.Call) bool {
		return c.Method != "sendMessage" && c.Method != "editMessageText"
	})
	if len(shows) > 2 && len(o.again) == 0 { // the missed text, and the end
		t.Errorf("caught up with in %d calls", len(shows))
	}
}

// After SIGTERM, as in an upgrade or a restart of the service, the turn continues in its agent.
func TestAnOrderedRestartLeavesAgentsAtWork(t *testing.T) {
	o := surroundings(t, nil).ordeal(4)
	for i := range 3 {
		trial := newTrial(i)
		gate := trial.name + "-go" // the turn does not end before ductor is back
		o.say("%s", strings.Replace(trial.script(), "sleep 0.2", "until [ -e "+gate+" ]; do sleep 0.05; done", 1))
		o.awaitWord(fmt.Sprintf("w%d-3", i))
		_ = o.daemon.cmd.Process.Signal(syscall.SIGTERM)
		began := time.Now()
		if code := o.daemon.exit(t); code != exitOK {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the end took %s, as if it had waited for the turn", took)
		}
		o.rise()
		o.makeFile(gate, nil)
		o.awaitWhole(trial)
		o.ranOnce(trial)
	}
	pids := map[string]bool{}
	for i := range 3 {
		b, _ := os.ReadFile(filepath.Join(o.cfg.Projects.DefaultDir, newTrial(i).name+"-a"))
		pids[strings.TrimSpace(string(b))] = true
	}
	if len(pids) != 1 {
		t.Errorf("three turns and two restarts took %d agents", len(pids))
	}
}

// awaitRecorded waits until the store marks the outcome of each turn as shown.
func (town *town) awaitRecorded() {
	town.t.Helper()
	db := openDatabase(town.t, town.database())
	defer db.Close()
	eventually(town.t, "all turns to be delivered", func() bool {
		var open int
		err := db.QueryRow(`SELECT count(*) FROM turns WHERE delivered = 0`).Scan(&open)
		return err == nil && open == 0
	})
}

// An idle agent ends with ductor, or at the next start if ductor was killed. Its session continues in another
// process.
func TestAnIdleAgentEndsWithDuctor(t *testing.T) {
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			town := surroundings(t, nil)
			town.agent = agent
			o := town.ordeal(12)
			o.say(`[[start]] [[text "answer 1"]]`)
			o.awaitWord("answer 1")
			first := o.idleAgent()
			o.awaitRecorded() // otherwise the next process continues the turn and the agent
			o.daemon.kill()
			o.rise()
			o.say(`[[start]] [[history]] [[text "and on it goes"]]`)
			o.awaitWord("and on it goes")
			second := o.idleAgent()
			if second.PID == first.PID {
				t.Errorf("the agent %d outlived ductor", first.PID)
			}
			_ = o.daemon.cmd.Process.Signal(syscall.SIGTERM)
			o.daemon.exit(t)
			if left := o.agentRuns(); len(left) > 0 {
				t.Errorf("these agents outlived ductor: %+v", left)
			}
		})
	}
}

// idleAgent returns the only agent.
func (town *town) idleAgent() runner.Info {
	town.t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if runs := town.agentRuns(); len(runs) == 1 {
			return runs[0]
		}
	}
	town.t.Fatalf("there is no one agent: %+v", town.runs())
	return runner.Info{}
}

// agentRuns returns the runs that are not probes.
func (town *town) agentRuns() []runner.Info {
	return slices.DeleteFunc(town.runs(), func(i runner.Info) bool {
		return purposeOf(i).Mode == ""
	})
}

// An abort ends a turn that outlived ductor, with everything that it started.
func TestAnAbortReachesATurnThatOutlivedDuctor(t *testing.T) {
	o := surroundings(t, nil).ordeal(5)
	o.say(
		`[[start]] [[tool cmd="setsid sh -c 'trap \"\" TERM; touch deaf; sleep 600; sleep 600' & touch started; sleep 600"]]`)
	awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, "deaf"))
	o.daemon.kill()
	o.rise()
	o.say("/abort")
	o.await("Aborted")
	o.checkNoTurnProcesses()
	o.say(`and on it goes [[start]] [[text "still here"]]`)
	o.await("still here")
}

// An abort takes effect even if ductor was killed during it.
func TestAnAbortIsNotForgottenWhenDuctorDies(t *testing.T) {
	o := surroundings(t, nil).ordeal(6)
	o.say(`[[start]] [[ignore-term]] [[tool cmd="trap '' TERM; touch started; sleep 600"]] [[text "went on"]]`)
	awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, "started"))
	o.say("this waits")
	o.await("next in line")
	o.say("/abort")
	o.awaitWord("Stopping")
	o.daemon.kill()
	o.rise()
	o.await("Stopped.") // whether the abort was stored or is taken up again
	o.checkNoTurnProcesses()
}

// If a runner is killed, users notice nothing: the turn continues, and an abort ends it with everything that it
// started.
func TestARunnerThatIsKilledLosesNoTurn(t *testing.T) {
	for _, down := range []string{"ductor is up", "ductor is down"} {
		t.Run(down, func(t *testing.T) {
			o := surroundings(t, nil).ordeal(7)
			trial := newTrial(0)
			o.say("%s", trial.script())
			o.awaitWord("w0-3")
			if down == "ductor is down" {
				o.daemon.kill()
			}
			_ = syscall.Kill(o.runner(), syscall.SIGKILL)
			if down == "ductor is down" {
				o.rise()
			}
			o.awaitWhole(trial)
			o.ranOnce(trial)
			o.say(
				`[[start]] [[tool cmd="setsid sh -c 'trap \"\" TERM; touch deaf; sleep 600; sleep 600' & sleep 600"]]`)
			awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, "deaf"))
			_ = syscall.Kill(o.runner(), syscall.SIGKILL)
			o.say("/abort")
			o.await("Aborted")
			o.checkNoTurnProcesses()
		})
	}
}

// If ductor does not return, the runner ends the agent. Its output is kept and shown.
func TestAnAgentThatNobodyComesBackToIsEnded(t *testing.T) {
	town := surroundings(t, nil)
	town.extra = "orphan_after = \"1s\""
	o := town.ordeal(8)
	o.say(`[[start]] [[text "before it was left alone"]] [[tool cmd="touch started; sleep 600"]]`)
	awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, "started"))
	o.awaitWord("left alone")
	o.daemon.kill()
	checkNoProcessIn(t, o.cfg.Projects.DefaultDir)
	o.rise()
	o.awaitButton("🔁 Run again")
	if text := joined(o.chat.View()); !strings.Contains(text, "before it was left alone") {
		t.Errorf("what it had said is not kept: %q", text)
	}
}

// A new build of ductor replaces the program of the runner, and turns continue.
func TestAnUpgradeGoesOn(t *testing.T) {
	town := surroundings(t, nil)
	o := &ordeal{town: town, config: town.writeConfig(), random: rand.New(rand.NewPCG(1, 9))}
	town.startOver(anotherBuild(t))
	trial := newTrial(0)
	o.say("%s", strings.Replace(trial.script(), "sleep 0.2;", "until [ -e gate ]; do sleep 0.05; done;", 1))
	o.awaitWord("w0-3")
	before := o.runner()
	town.leave()
	o.rise()
	if err := os.WriteFile(filepath.Join(town.cfg.Projects.DefaultDir, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.awaitWhole(trial)
	o.ranOnce(trial)
	if after := o.runner(); after != before {
		t.Errorf("the runner was %d and is %d", before, after)
	}
}
