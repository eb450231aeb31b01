package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Prompt is a prompt of a user. It tells the scripted agent what to do, in order.
type Prompt struct {
	Token Token
	Acts  []Act
}

// Act is one thing that the scripted agent does.
type Act interface{ isAct() }

// Values of type Act. Run, Ask, Write and Background cause an effect, which shows that the act has run. Token.Effect
// returns the effect's name.
type (
	// Text writes words that contain the token and a number. Every is the pause between two words.
	Text struct {
		Words int
		Every time.Duration
	}
	// Think writes reasoning with this number of words.
	Think struct{ Words int }
	// Run runs a shell command that causes the act's effect and then sleeps for the duration For.
	Run struct{ For time.Duration }
	// Ask runs a shell command that causes the act's effect. The agent must ask for permission to run the command.
	Ask struct{}
	// Write writes the name of the act's effect into a file.
	Write struct{ File string }
	// Question asks the user a question, which the user answers in words. Only Codex supports Question.
	Question struct{ Text Quoted }
	// Sleep does nothing for the duration For.
	Sleep struct{ For time.Duration }
	// Background is like Run, but runs the shell command in the background. Only Claude supports Background.
	Background struct{ For time.Duration }
	// Fail makes requests to the model's API fail with an HTTP status. Times is the number of failures; 0 means that
	// all requests fail.
	Fail struct{ Status, Times int }
	// Break makes the agent misbehave.
	Break struct{ How Damage }
	// Leak prints the secret (see SecretVariable) in small pieces, within about a second.
	Leak struct{}
	// Cost sets the cost of the turn in cents.
	Cost struct{ Cents int }
	// Compact compacts the agent's context.
	Compact struct{}
)

// Damage is a kind of misbehavior of an agent.
type Damage string

// Damage values. After Stubborn, the agent ignores SIGTERM. Holding makes the agent start a process that holds the
// agent's standard output open.
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

// SecretVariable names an environment variable of agents whose value is a secret. The act Leak prints the value.
const SecretVariable = "ORDEAL_SECRET"

// Effect returns the name of the effect of act i, for example "p17.3".
func (t Token) Effect(i int) string { return string(t) + "." + strconv.Itoa(i) }

// Word returns word i of the answer, for example "p17w3".
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

// Effects returns the names of the effects of all acts, in order. An effect happens unless a fault prevents it or a
// user denies it.
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

// Script returns the prompt as a script for the scripted agent (see package internal/sim/script). effect returns the
// shell command that causes an effect, for example "echo p17.3 >> /tmp/effects".
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

// directive returns a directive for the scripted agent, with options. If first is not empty, it is the directive's
// first value.
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

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s) + `"`
}
