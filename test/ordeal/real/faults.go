package real

import (
	"fmt"
	"syscall"
	"time"
)

// killSome kills -9 processes of the named roles all at once, and starts ductor again where it was one of them.
func (o *ordeal) killSome(roles []string) error {
	all := processes()
	for _, is := range roles {
		switch role(is) {
		case roleOfDuctor:
			_ = o.daemon.cmd.Process.Kill() // those of the other roles must not wait for its end
		case roleOfAgent, roleOfTool, roleOfRunner:
			picked := of(all, role(is))
			if len(picked) > 0 && role(is) != roleOfRunner {
				picked = picked[o.random.IntN(len(picked)):][:1]
			}
			o.note("kills %v", picked)
			signalAll(picked, syscall.SIGKILL)
		default:
			return fmt.Errorf("%q is no role", is)
		}
	}
	for _, is := range roles {
		if role(is) == roleOfDuctor {
			o.kill()
			time.Sleep(time.Duration(o.random.IntN(700)) * time.Millisecond)
			return o.awaitPoll()
		}
	}
	return nil
}

// suspend stops processes for a moment, as a laptop does whose lid closes: ductor alone, or everything.
func (o *ordeal) suspend(what string) error {
	some := processes()
	if what == "ductor" {
		some = of(some, roleOfDuctor)
	}
	signalAll(some, syscall.SIGSTOP)
	time.Sleep(time.Duration(1+o.random.IntN(4)) * time.Second)
	signalAll(some, syscall.SIGCONT)
	return nil
}

// network changes the weather for a while: KIND DURATION.
func (o *ordeal) network(words []string) error {
	if words[0] == "cut" {
		o.line.cut()
		return nil
	}
	d, err := time.ParseDuration(words[1])
	if err != nil {
		return err
	}
	o.line.set(weather(words[0]))
	time.Sleep(d)
	o.line.set(fair)
	return nil
}

// diskFault has the disk under ductor's state misbehave for a while: fills DURATION, hangs DURATION, or read-only over a restart.
func (o *ordeal) diskFault(words []string) error {
	d, err := time.ParseDuration(words[1])
	if err != nil {
		return err
	}
	switch words[0] {
	case "fills":
		if err := o.disk.fill(); err != nil {
			return err
		}
		time.Sleep(d)
		return o.disk.clear()
	case "hangs":
		if err := o.disk.freeze(); err != nil {
			return err
		}
		time.Sleep(d)
		return o.disk.thaw()
	case "read-only": // as after an error of the disk and a start of the machine
		o.kill()
		signalAll(processes(), syscall.SIGKILL)
		if err := eventually("the end of all processes", func() bool { return len(processes()) == 0 }); err != nil {
			return err
		}
		if err := o.disk.readOnly(true); err != nil {
			return err
		}
		if err := o.start(); err != nil {
			return err
		}
		time.Sleep(d)
		o.kill()
		if err := o.disk.readOnly(false); err != nil {
			return err
		}
		return o.awaitPoll()
	}
	return fmt.Errorf("a disk cannot do that")
}

// eventually waits for a condition.
func eventually(what string, ok func() bool) error {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("waited in vain for %s", what)
		}
	}
	return nil
}
