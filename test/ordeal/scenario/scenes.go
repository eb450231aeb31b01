package scenario

import (
	"slices"
	"time"
)

// This file generates sequences of steps that belong together. They would be rare if each step was chosen
// independently.

// begin makes a user send a prompt, and returns the prompt. The prompt begins with the given acts, followed by random
// acts.
func (g *generator) begin(by Person, in Place, acts ...Act) Prompt {
	p := g.prompt(by, in)
	p.Acts = append(slices.Clone(acts), p.Acts...)
	g.prompts[len(g.prompts)-1].Prompt = p
	g.add(Say{By: by, In: in, Prompt: p})
	return p
}

func (g *generator) shared() Place {
	if len(g.places) > 0 && g.chance(60) {
		return pick(g, g.places...)
	}
	return g.place()
}

// pause adds a step that waits for at most five seconds, or no step.
func (g *generator) pause() {
	switch n := g.IntN(10); {
	case n < 3:
	case n < 6:
		g.add(Wait{For: g.between(time.Millisecond, 300*time.Millisecond)})
	default:
		g.add(Wait{For: g.between(300*time.Millisecond, 5*time.Second)})
	}
}

// anyone returns a random user. Two of the four users, Bob and Mallory, are not allowed to decide requests.
func (g *generator) anyone() Person { return pick(g, Owner, Ann, Bob, Mallory) }

// ask makes an agent ask for permission, and makes users press up to three buttons of the request. The sender of the
// prompt presses half of the buttons, and random users press the others. Before the first press, ductor or the agent
// may end, or the sender may abort the turn.
func (g *generator) ask() {
	by, in := pick(g, Owner, Owner, Ann), g.shared()
	acts := []Act{Ask{}}
	if g.chance(30) {
		acts = append(acts, Run{}, Ask{})
	}
	p := g.begin(by, in, acts...)
	g.add(Wait{For: g.between(500*time.Millisecond, 4*time.Second)})
	switch g.IntN(10) {
	case 0:
		g.stop()
	case 1:
		g.add(Type{By: by, In: in, Text: "/abort"})
	case 2:
		g.add(Wait{For: g.between(50*time.Second, 6*time.Minute)}) // a longer wait exceeds the time limit
	case 3:
		g.add(Kill{What: Agent, Of: p.Token})
	}
	for i := range 1 + g.IntN(3) {
		press := Press{By: by, Old: i > 0 && g.chance(40),
			Button: pick(g, AllowOnce, AllowOnce, Deny, Deny, AllowSession, AllowRule), Of: p.Token}
		if g.chance(50) {
			press.By = g.anyone()
		}
		g.add(press)
		g.pause()
	}
}

// insist makes a turn fail, and makes users press a button of the failed turn several times. ductor may restart between
// two presses.
func (g *generator) insist() {
	by, in := pick(g, Owner, Owner, Ann), g.shared()
	badly := []Act{Run{}, pick[Act](g, Break{Crashes}, Break{Drops}, Fail{Status: pick(g, 400, 500)},
		Sleep{For: 40 * time.Second})}
	p := g.begin(by, in, badly...)
	g.add(Wait{For: g.between(time.Second, 8*time.Second)})
	if _, sleeps := badly[1].(Sleep); sleeps {
		g.add(Kill{What: Agent, Of: p.Token})
	}
	if g.chance(50) {
		g.add(Settle{})
	}
	button := pick(g, RunAgain, RunAgain, RunAgain, StartFresh, ShowAgain)
	for range 1 + g.IntN(3) {
		for i := range 1 + g.IntN(3) { // press again before ductor can remove the button
			press := Press{By: by, Old: i > 0 || g.chance(50), Button: button, Of: p.Token}
			if g.chance(20) {
				press.By = g.anyone()
			}
			g.add(press)
		}
		if g.chance(20) {
			g.add(Stop{How: pick(g, Crash, Restart)})
		}
		g.pause()
	}
}

// ending makes Telegram slow or faulty while short turns end. ductor may also end at this time.
func (g *generator) ending() {
	by, in := pick(g, Owner, Owner, Ann), g.place()
	late := pick(g, g.between(50*time.Millisecond, 400*time.Millisecond),
		g.between(50*time.Millisecond, 400*time.Millisecond), g.between(400*time.Millisecond, 6*time.Second))
	t := Telegram{Fault: Late, For: late, Method: pick(g, "", "", "sendMessage", "editMessageText"),
		Times: 1 + g.IntN(40)}
	if g.chance(25) {
		t = Telegram{Fault: pick(g, DropAfter, Half, GatewayAfter, ServerError, DropBefore), Method: t.Method,
			Skip: g.IntN(3), Times: 1 + g.IntN(2)}
	}
	g.add(t)
	text := Text{Words: 2 + g.IntN(40), Every: pick(g, 5*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond)}
	for range 1 + g.IntN(3) {
		p := g.prompt(by, in)
		p.Acts = []Act{text}
		g.prompts[len(g.prompts)-1].Prompt = p
		g.add(Say{By: by, In: in, Prompt: p})
		g.add(Wait{For: g.between(300*time.Millisecond, 3*time.Second)})
	}
	if g.chance(50) {
		g.begin(by, in, text)
		g.add(Wait{For: g.between(time.Millisecond, time.Duration(text.Words)*text.Every+2*time.Second)})
		g.stop()
	}
}

// halt makes a user abort a turn at a bad moment, and send more prompts soon after the abort. ductor may be killed at
// the same time.
func (g *generator) halt() {
	by, in := pick(g, Owner, Owner, Ann), g.shared()
	p := g.begin(by, in, pick[Act](g, Run{For: 10 * time.Second}, Ask{}, Sleep{For: 20 * time.Second},
		Text{Words: 100, Every: 50 * time.Millisecond}), Run{})
	g.pause()
	if g.chance(40) {
		g.begin(by, in, Run{})
		g.pause()
	}
	dies := g.chance(40)
	if dies && g.chance(50) {
		g.add(Stop{How: pick(g, Crash, Power), Point: pick(g, AtWrite, AtFlush, AtCall), N: 1 + g.IntN(6)})
	}
	who := by
	if g.chance(30) {
		who = g.anyone()
	}
	if g.chance(70) {
		g.add(Type{By: who, In: in, Text: pick[Quoted](g, "/abort", "/abort", "/stop")})
	} else {
		g.add(Press{By: who, Button: StopTurn, Of: p.Token})
	}
	if dies {
		g.pause()
		g.add(Stop{How: pick(g, Crash, Crash, Power, Restart)})
	}
	if g.chance(50) {
		g.begin(by, in, Run{})
	}
}

// spend adds turns that cost money, to use up a budget.
func (g *generator) spend() {
	if !g.budget {
		g.say()
		return
	}
	by, in := pick(g, Owner, Owner, Ann), g.place()
	for range 2 + g.IntN(3) {
		g.begin(by, in, Run{}, Cost{Cents: 2 + g.IntN(4)})
		g.pause()
	}
}
