package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Prompt is a user's prompt: the actions of the scripted agent, in order.
type Prompt struct {
	Token Token
	Acts  []Act
}

// Act is one action of an agent.
type Act interface{ isAct() }

type (
	// Text writes numbered words with the token, one in each interval Every.
	Text struct {
		Words int
		Every time.Duration
	}
	// Think reasons with this number of words.
	Think struct{ Words int }
	// Run lets the shell cause the act's effect and then run for the duration For.
	Run struct{ For time.Duration }
	// Ask is Run with a command that needs an approval.
	Ask struct{}
	// Write writes the effect's name into a file.
	Write struct{ File string }
	// Question asks the user a question that is answered in words. Only Codex supports it.
	Question struct{ Text Quoted }
	// Sleep is silence.
	Sleep struct{ For time.Duration }
	// Background runs the effect in the background. Only Claude supports it.
	Background struct{ For time.Duration }
	// Fail makes the model's API fail with a status, Times times or always.
	Fail struct{ Status, Times int }
	// Break breaks the agent.
	Break struct{ How Damage }
	// Leak prints the world's secret piece by piece, within about a second.
	Leak struct{}
	// Cost sets the cost of the turn in cents.
	Cost struct{ Cents int }
	// Compact shortens the context.
	Compact struct{}
)

// Damage is the way in which an agent breaks.
type Damage string

// Damage values. From a Stubborn on, the agent ignores SIGTERM. Holding leaves a process that holds the agent's output
// open.
const (
	Crashes  Damage = "crash"
	Hangs    Damage = "hang"
	Floods   Damage = "flood"
	Garbage  Damage = "garbage"
	Silent   Damage = "silent"
	Drops    Damage = "drop"
	Stubborn Damage = "stubborn"
	Holding  Damage = "hold"
)

func (Damage) values() []string {
	return []string{"crash", "hang", "flood", "garbage", "silent", "drop", "stubborn", "hold"}
}

func (Text) isAct()       {}
func (Think) isAct()      {}
func (Run) isAct()        {}
func (Ask) isAct()        {}
func (Write) isAct()      {}
func (Question) isAct()   {}
func (Sleep) isAct()      {}
func (Background) isAct() {}
func (Fail) isAct()       {}
func (Break) isAct()      {}
func (Leak) isAct()       {}
func (Cost) isAct()       {}
func (Compact) isAct()    {}

// SecretVariable is the environment variable of agents with the world's secret, which Leak prints.
const SecretVariable = "ORDEAL_SECRET"

// Effect returns the name of the effect of act number i: p17.3.
func (t Token) Effect(i int) string { return string(t) + "." + strconv.Itoa(i) }

// Word returns word number i of the answer: p17w3.
func (t Token) Word(i int) string { return string(t) + "w" + strconv.Itoa(i) }

// Words returns the words of the answer, in order.
func (p Prompt) Words() []string {
	var all []string
	for _, act := range p.Acts {
		if text, ok := act.(Text); ok {
			for range text.Words {
				all = append(all, p.Token.Word(len(all)))
			}
		}
	}
	return all
}

// Effects returns the names of the prompt's effects if everything works and is allowed, in order.
func (p Prompt) Effects() []string {
	var all []string
	for i, act := range p.Acts {
		switch act.(type) {
		case Run, Ask, Write, Background:
			all = append(all, p.Token.Effect(i))
		}
	}
	return all
}

// Script returns the prompt as directives of package internal/sim/script. effect returns the shell command for an
// effect, such as "echo p17.3 >> /tmp/effects".
func (p Prompt) Script(effect func(name string) string) string {
	b := string(p.Token)
	word := 0
	for i, act := range p.Acts {
		name := p.Token.Effect(i)
		switch act := act.(type) {
		case Text:
			b += fmt.Sprintf(" [[words %s n=%d from=%d chunk=%d]]", p.Token, act.Words, word,
				max(8, act.Words*len(p.Token.Word(word+act.Words))/50))
			word += act.Words
			if act.Every > 0 {
				b = strings.TrimSuffix(b, "]]") + " delay=" + short(act.Every) + "]]"
			}
		case Think:
			b += fmt.Sprintf(" [[think n=%d]]", max(1, act.Words))
		case Run:
			b += directive("tool", "", "cmd", andSleep(effect(name), act.For))
		case Ask:
			b += directive("ask", "", "cmd", effect(name))
		case Write:
			b += directive("write", "", "path", act.File, "text", name+"\n")
		case Question:
			b += directive("question", string(act.Text))
		case Sleep:
			b += " [[sleep " + short(act.For) + "]]"
		case Background:
			b += directive("background", andSleep(effect(name), act.For), "text", name+" ended")
		case Fail:
			b += fmt.Sprintf(" [[error %d times=%d]]", act.Status, act.Times)
		case Break:
			b += breaking(act.How)
		case Leak:
			b += " [[text env=" + SecretVariable + " chunk=3 delay=120ms]]"
		case Cost:
			b += fmt.Sprintf(" [[usage in=10 out=5 cost=%d.%02d]]", act.Cents/100, act.Cents%100)
		case Compact:
			b += " [[compact]]"
		}
	}
	return b
}

func andSleep(command string, d time.Duration) string {
	if d <= 0 {
		return command
	}
	return fmt.Sprintf("%s; sleep %g", command, d.Seconds())
}

func breaking(how Damage) string {
	switch how {
	case Floods:
		return " [[longline bytes=300000]]"
	case Garbage:
		return " [[garbage bytes=256]]"
	case Crashes:
		return " [[crash code=3]]"
	case Stubborn:
		return " [[ignore-term]]"
	case Holding:
		return " [[hold-pipe for=20s]]"
	}
	return " [[" + string(how) + "]]"
}

// directive returns a directive with options, and with first as its first value unless that is empty.
func directive(name, first string, options ...any) string {
	b := " [[" + name
	if first != "" {
		b += " " + quoted(first)
	}
	for i := 0; i+1 < len(options); i += 2 {
		b += fmt.Sprintf(" %s=", options[i])
		switch v := options[i+1].(type) {
		case string:
			b += quoted(v)
		default:
			b += fmt.Sprint(v)
		}
	}
	return b + "]]"
}

// quoted quotes a text for package script.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s) + `"`
}
