package real

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
)

// ordeal is one seed: its script, and what is to be judged of it.
type ordeal struct {
	*world
	job     Job
	random  *rand.Rand
	report  Report
	prompts map[string]*prompt
	names   []string // of prompts, in the order in which they were sent
	again   map[telegram.MessageID]bool
}

// prompt is a message of a user that an agent is to run once.
type prompt struct {
	token   string
	kind    string
	chat    *telegram.Chat
	topic   telegram.TopicID
	aborted bool // its chat was told to stop afterwards
	asked   int  // how often a user asked for it, counting presses of Run again
	resent  int  // how often a user asked to see the answer again
}

func newOrdeal(w *world, job Job) *ordeal {
	o := &ordeal{
		world: w, job: job, random: rand.New(rand.NewPCG(3, job.Seed)), prompts: map[string]*prompt{}, again: map[telegram.MessageID]bool{},
		report: Report{Script: job.Script, Faults: map[string]int{}},
	}
	if len(o.report.Script) == 0 {
		o.report.Script = generate(job)
	}
	return o
}

func (o *ordeal) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	o.note("violation: %s", text)
	o.report.Violations = append(o.report.Violations, text)
}

// run goes through the script, lets everything come to rest, and judges.
func (o *ordeal) run() {
	if err := o.awaitPoll(); err != nil {
		o.violation("%v", err)
		return
	}
	for _, step := range o.report.Script {
		o.note("step: %s", step)
		if err := o.do(step); err != nil {
			o.violation("step %q: %v", step, err)
			return
		}
	}
	o.report.Prompts = len(o.names)
	if err := o.settle(); err != nil {
		o.violation("no rest after the last fault: %v", err)
		return
	}
	o.judgeChats()
	if err := o.stop(); err != nil {
		o.violation("%v", err)
	}
	o.judgeLeftovers()
}

// do carries out one step.
func (o *ordeal) do(step string) error {
	words := strings.Fields(step)
	verb := words[0]
	if verb != "owner" && verb != "ann" && verb != "wait" {
		o.report.Faults[strings.Join(words[:min(len(words), 2)], " ")]++
	}
	switch verb {
	case "owner", "ann":
		return o.user(verb, words[1:])
	case "wait":
		d, err := time.ParseDuration(words[1])
		time.Sleep(d)
		return err
	case "kill":
		return o.killSome(words[1:])
	case "restart":
		if err := o.stop(); err != nil {
			return err
		}
		return o.awaitPoll()
	case "upgrade":
		if err := o.install(1 - o.build); err != nil {
			return err
		}
		if err := o.stop(); err != nil {
			return err
		}
		return o.awaitPoll()
	case "suspend":
		return o.suspend(words[1])
	case "network":
		return o.network(words[1:])
	case "disk":
		return o.diskFault(words[1:])
	case "load":
		end, err := busy(20, 10)
		if err == nil {
			o.unload = end
		}
		return err
	}
	return fmt.Errorf("no such step")
}

// chatOf is where a user writes: a private chat, or a topic of the group.
func (o *ordeal) chatOf(user string) (*telegram.Person, *telegram.Chat) {
	if user == "ann" {
		c := o.srv.Private(annID, "Ann")
		return c.Person(), c
	}
	c := o.srv.Private(ownerID, "Owner")
	return c.Person(), c
}

// user has a user do something: say TOKEN KIND, abort, model NAME, press BUTTON.
func (o *ordeal) user(name string, words []string) error {
	who, chat := o.chatOf(name)
	switch words[0] {
	case "says":
		p := &prompt{token: words[1], kind: words[2], chat: chat, asked: 1}
		o.prompts[p.token] = p
		o.names = append(o.names, p.token)
		who.Send(chat, o.text(p))
	case "aborts":
		for _, p := range o.prompts {
			p.aborted = p.aborted || p.chat == chat
		}
		who.Send(chat, "/abort")
	case "picks":
		who.Send(chat, "/model "+words[1])
	case "allows":
		o.decide(chat, "✅ Allow once")
	case "denies":
		o.decide(chat, "⛔ Deny")
	default:
		return fmt.Errorf("users cannot do that")
	}
	return nil
}

// text is what a user writes.
func (o *ordeal) text(p *prompt) string {
	effect := fmt.Sprintf("echo %s >> %s", p.token, o.effects())
	begin := fmt.Sprintf(`[[start]] [[text "%s-begin %s" delay=15ms chunk=6]]`, p.token, words(p.token, 12))
	end := fmt.Sprintf(`[[text "%s %s-end" delay=15ms chunk=6]]`, words(p.token, 12), p.token)
	tool := func(cmd string) string { return fmt.Sprintf(`[[tool cmd="%s"]]`, cmd) }
	switch p.kind {
	case "tool":
		return p.token + " " + begin + tool(effect+"; sleep 0.4") + end
	case "ask":
		return p.token + " " + begin + fmt.Sprintf(`[[ask cmd="%s"]]`, effect) + end
	case "spawn": // a tool leaves a process behind that ignores everything but SIGKILL
		return p.token + " " + begin + tool(effect+`; setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000; sleep 1000' </dev/null >/dev/null 2>&1 &`) + end
	case "file":
		return p.token + " " + begin + tool(effect) + fmt.Sprintf(`[[write path="%[1]s.txt" text="of %[1]s"]][[text "[[file: %[1]s.txt]]\n"]]`, p.token) + end
	case "secret":
		return p.token + " " + begin + tool(effect+"; echo $ANTHROPIC_API_KEY$OPENAI_API_KEY$GEMINI_API_KEY") + end
	case "long":
		return p.token + " " + begin + tool(effect) + fmt.Sprintf(`[[text n=900 delay=2ms]]`) + end
	}
	return p.token + " " + begin + tool(effect) + end
}

func words(token string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s.%d", token, i))
	}
	return strings.Join(all, " ")
}

// decide presses a button of the newest message that has it, if there is one.
func (o *ordeal) decide(chat *telegram.Chat, button string) {
	all := chat.View().FromBot()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].HasButton(button) {
			o.press(chat, all[i], button)
			return
		}
	}
}

// press presses a button and reports whether ductor took it: it answers without a text that says otherwise.
func (o *ordeal) press(chat *telegram.Chat, on telegram.Message, button string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	answer, err := chat.Person().Press(ctx, on, button)
	o.note("pressed %q in %d: %q %v", button, chat.ID(), answer.Text, err)
	return err == nil && answer.Text == ""
}
