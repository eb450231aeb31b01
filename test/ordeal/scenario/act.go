package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Prompt is what a user asks for: what the scripted agent does, act by act.
type Prompt struct {
	Token Token
	Acts  []Act
}

// Act is one thing that an agent does.
type Act interface{ isAct() }

type (
	// Text writes words that carry the token and their number, one each Every.
	Text struct {
		Words int
		Every time.Duration
	}
	// Think reasons in so many words.
	Think struct{ Words int }
	// Run has the shell cause the effect of the act, and go on For so long.
	Run struct{ For time.Duration }
	// Ask is Run of a command that needs an approval.
	Ask struct{}
	// Write writes a file whose content is the effect's name.
	Write struct{ File string }
	// Question asks the user in words. Codex alone.
	Question struct{ Text Quoted }
	// Sleep is silence.
	Sleep struct{ For time.Duration }
	// Background runs the effect in the background for so long. Claude alone.
	Background struct{ For time.Duration }
	// Fail is a model's API that fails with a status: Times times, or for ever.
	Fail struct{ Status, Times int }
	// Break is an agent that breaks.
	Break struct{ How Damage }
	// Leak prints the secret of the world, piece by piece, over a second or so.
	Leak struct{}
	// Cost is what the turn costs, in cents.
	Cost struct{ Cents int }
	// Compact shortens the context.
	Compact struct{}
)

// Damage is how an agent breaks.
type Damage string

// How an agent breaks. Stubborn ignores SIGTERM from here on; Holding leaves a process behind that holds its output.
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

// SecretVariable is the variable of an agent's environment that holds the secret of the world, which Leak prints.
const SecretVariable = "ORDEAL_SECRET"

// Effect is the name of the effect of act number i: p17.3.
func (t Token) Effect(i int) string { return string(t) + "." + strconv.Itoa(i) }

// Word is word number i of the answer: p17w3.
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

// Effects returns the names of the effects that the prompt has when all goes well and all is allowed, in order.
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

// Script returns the prompt in the directives of package internal/sim/script. effect is the shell command that causes an
// effect, such as "echo p17.3 >> /tmp/effects".
func (p Prompt) Script(effect func(name string) string) string {
	b := string(p.Token)
	word := 0
	for i, act := range p.Acts {
		name := p.Token.Effect(i)
		switch act := act.(type) {
		case Text:
			b += fmt.Sprintf(" [[words %s n=%d from=%d chunk=%d]]", p.Token, act.Words, word, max(8, act.Words*len(p.Token.Word(word+act.Words))/50))
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

// directive returns one directive with a first value, if it is not empty, and options.
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

// quoted is a text between quotes, as package script reads it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s) + `"`
}
