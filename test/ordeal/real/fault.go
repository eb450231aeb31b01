package real

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// fault causes the fault of a step. A temporary fault ends after the step's duration, or when heal ends all faults.
func (o *ordeal) fault(step scenario.Step) error {
	switch step := step.(type) {
	case scenario.Stop:
		if step.Point != "" {
			o.waiting.Go(func() {
				o.awaitPoint(step.Point, step.N)
				o.trouble(o.end(step))
			})
			return nil
		}
		return o.end(step)
	case scenario.Telegram:
		o.telegram(step)
	case scenario.Happen:
		o.places.happen(step)
	case scenario.Disk:
		return o.diskFault(step)
	case scenario.Suspend:
		all := processes()
		signalAll(all, syscall.SIGSTOP)
		time.Sleep(step.For)
		signalAll(all, syscall.SIGCONT)
	case scenario.Kill:
		o.killSome(step)
	case scenario.Updates:
		if release := o.spoiled.Updates(step); release != nil {
			o.waiting.Go(func() { o.sleep(mostWait); release(0) })
		}
	}
	return nil
}

// sleep waits for the duration d, or until heal ends all faults.
func (o *ordeal) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-o.healed:
	}
}

// end ends ductor, and starts it again after a pause.
func (o *ordeal) end(step scenario.Stop) error {
	o.ending.Lock() // two steps must not end ductor at the same time
	defer o.ending.Unlock()
	stop := judge.Stop{How: step.How}
	var err error
	switch step.How {
	case scenario.Crash:
		o.kill()
	case scenario.Power:
		stop.At, err = o.power()
	case scenario.Upgrade:
		err = errors.Join(o.install(1-o.build), o.stop())
	case scenario.Restart:
		err = o.stop()
	}
	if stop.At.IsZero() {
		stop.At = time.Now()
	}
	o.sleep(step.Down)
	stop.Up = time.Now()
	o.mu.Lock()
	o.evidence.Stops = append(o.evidence.Stops, stop)
	o.mu.Unlock()
	return errors.Join(err, o.awaitPoll())
}

// power kills all processes at once, and returns the time at which it killed them. On ext4, all data that was not
// flushed is lost.
func (o *ordeal) power() (at time.Time, err error) {
	lost := o.disk.shutdown()
	for {
		all := processes()
		signalAll(all, syscall.SIGKILL)
		if at.IsZero() { // first round: on a busy machine, more rounds follow until all processes have ended
			at = time.Now()
		}
		o.kill()
		if len(all) == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	o.note("all ended %s after the power failure", time.Since(at))
	if lost != nil {
		return at, lost
	}
	return at, o.disk.remount()
}

// awaitPoint waits until an event has happened n times, but for at most a few seconds.
func (o *ordeal) awaitPoint(point scenario.Point, n int) {
	const most, look = 8 * time.Second, time.Millisecond
	moment := func() int64 { return int64(len(o.srv.Calls(telegram.Writes))) }
	switch point {
	case scenario.AtWrite, scenario.AtFlush:
		moment = func() int64 { return changeOf(o.database() + "-wal") }
	case scenario.AtOutput:
		moment = o.journals
	}
	last := moment()
	for deadline := time.Now().Add(most); n > 0 && time.Now().Before(deadline); {
		select {
		case <-time.After(look):
		case <-o.healed:
			return
		}
		if now := moment(); now != last {
			last = now
			n--
		}
	}
}

// changeOf returns a number that changes when the file at path changes.
func changeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano() + info.Size()
}

// journals returns the total size of the files with the output of agents.
func (o *ordeal) journals() (sum int64) {
	files, _ := filepath.Glob(filepath.Join(o.state(), "runner", "*", "out"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// telegram makes calls to Telegram fail.
func (o *ordeal) telegram(step scenario.Telegram) {
	if step.Fault == scenario.Away {
		o.waiting.Go(func() { o.line.set(refuse); o.sleep(step.For); o.line.set(o.job.Conditions.Line) })
		return
	}
	o.spoiled.Calls(step)
}

// diskFault makes ductor's disk full, slow or unresponsive for the step's duration.
func (o *ordeal) diskFault(step scenario.Disk) error {
	bad, good := o.disk.fill, o.disk.clear
	if step.Fault == scenario.DiskSlow {
		bad, good = o.disk.freeze, o.disk.thaw
	}
	if err := bad(); err != nil {
		return err
	}
	o.waiting.Go(func() {
		o.sleep(max(step.For, time.Second))
		o.trouble(good())
	})
	return nil
}

// killSome kills the processes that a step names.
func (o *ordeal) killSome(step scenario.Kill) {
	all := processes()
	some := withRole(all, roleOfAgent)
	switch step.What {
	case scenario.Runner:
		some = withRole(all, roleOfRunner)
	case scenario.Agent:
		some = o.agentOf(step.Of, some)
	}
	o.note("kills %v", some)
	signalAll(some, syscall.SIGKILL)
}

// agentOf returns the agent that ran the prompt with this token. If it finds no such agent, it returns the first of the
// agents.
func (o *ordeal) agentOf(token scenario.Token, agents []process) []process {
	for _, e := range o.agentEvents() {
		for _, p := range agents {
			if e.Token == token && e.Run == fmt.Sprint(p.pid) {
				return []process{p}
			}
		}
	}
	if len(agents) == 0 {
		return nil
	}
	return agents[:1]
}

func (o *ordeal) heal() {
	o.spoiled.Heal()
	o.mu.Lock()
	close(o.healed)
	o.mu.Unlock()
	o.waiting.Wait()
	o.line.set(fair)
	o.trouble(errors.Join(o.disk.thaw(), o.disk.clear()))
	o.healed = make(chan struct{})
}

// eventually waits until ok returns true. It returns an error if this takes too long.
func eventually(what string, ok func() bool) error {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("waited in vain for %s", what)
		}
	}
	return nil
}
