package scenario

import (
	"time"
)

func (g *generator) say() {
	by, in := g.user(), g.place()
	say := Say{By: by, In: in}
	if len(g.prompts) > 0 && g.chance(10) {
		say.ReplyTo = pick(g, g.prompts...).Token
	}
	say.Prompt = g.prompt(by, in)
	g.add(say)
	if g.chance(15) { // send two messages at once
		g.add(Say{By: by, In: in, Prompt: g.prompt(by, in)})
	}
}

func (g *generator) send() {
	by, in := g.user(), g.place()
	g.add(Send{By: by, In: in, Count: 1 + g.IntN(4), Media: pick(g, Photo, Photo, Document), Prompt: g.prompt(by, in)})
}

// recent returns an earlier prompt, mostly a recent one. It returns false if there is none.
func (g *generator) recent() (placed, bool) {
	if len(g.prompts) == 0 {
		return placed{}, false
	}
	if g.chance(75) {
		return g.prompts[len(g.prompts)-1-g.IntN(min(2, len(g.prompts)))], true
	}
	return pick(g, g.prompts...), true
}

func (g *generator) edit() {
	if old, ok := g.recent(); ok {
		g.add(Edit{By: old.by, Old: old.Token, Prompt: g.prompt(old.by, old.in)})
	}
}

// press adds a step that presses a button on a message about a recent prompt. In most steps, the user is the sender of
// the prompt, and ductor shows the button for such a prompt (see fitting).
func (g *generator) press() {
	p, ok := g.recent()
	if !ok {
		return
	}
	by := p.by
	if g.chance(15) {
		by = pick(g, Owner, Ann, Bob, Mallory)
	}
	button := pick(g, StopTurn, Steer, Interrupt, CancelQueued, RunAgain, ShowAgain, StartOver, StartFresh, AllowRule,
		AllowSession)
	if fitting := fitting(p.Acts); len(fitting) > 0 && g.chance(70) {
		button = pick(g, fitting...)
	}
	press := Press{By: by, Old: g.chance(10), Button: button, Of: p.Token}
	g.add(press)
	if g.chance(15) { // press twice
		g.add(press)
	}
}

// fitting returns buttons that ductor shows when an agent performs these acts. A button that is more likely to be
// chosen is in the list several times.
func fitting(acts []Act) (all []Button) {
	for _, act := range acts {
		switch act.(type) {
		case Ask:
			all = append(all, AllowOnce, AllowOnce, AllowOnce, Deny, AllowSession)
		case Write:
			all = append(all, AllowOnce, Undo, Redo)
		case Break, Fail:
			all = append(all, RunAgain, RunAgain, StartFresh)
		case Sleep, Run:
			all = append(all, StopTurn)
		}
	}
	return all
}

// queue starts a long turn, adds prompts that must wait for the long turn, and then changes the order of the waiting
// prompts.
func (g *generator) queue() {
	by, in := g.user(), g.place()
	g.begin(by, in, Run{}, Sleep{For: g.between(2*time.Second, 40*time.Second)})
	for range 1 + g.IntN(3) {
		// The pause is long enough that ductor does not join the messages to one prompt.
		g.add(Wait{For: g.between(400*time.Millisecond, 2*time.Second)})
		g.begin(by, in, Run{})
	}
	if g.chance(60) {
		g.add(Wait{For: g.between(10*time.Millisecond, time.Second)})
	}
	newest := g.prompts[len(g.prompts)-1]
	switch g.IntN(8) {
	case 0:
		g.add(Press{By: by, Button: pick(g, Steer, Interrupt, CancelQueued), Of: newest.Token})
	case 1:
		edit := Edit{By: by, Old: newest.Token, Prompt: g.prompt(by, in)}
		edit.Acts = append([]Act{Run{}}, edit.Acts...)
		g.prompts[len(g.prompts)-1].Prompt = edit.Prompt
		g.add(edit)
	case 2, 3:
		g.add(Type{By: by, In: in, Text: "/abort"})
		if g.chance(70) {
			g.add(Wait{For: g.between(10*time.Millisecond, 3*time.Second)})
			g.add(Stop{How: pick(g, Crash, Crash, Power, Restart)})
		}
	case 4, 5:
		g.stop()
	}
}

func (g *generator) pressAny() {
	g.add(PressAny{By: g.user(), Old: g.chance(40), N: g.IntN(200), In: g.place()})
}

func (g *generator) command() {
	text := pick(g,
		"/abort", "/abort", "/abort", "/stop", "stop", "/new", "/new", "/status", "/model", "/permissions plan",
		"/permissions ask",
		"/permissions accept-edits", "/permissions bypass", "/queue steer", "/queue interrupt", "/queue queue",
		"/sessions", "/help",
		"/diff", "/checkpoint here", "/checkpoint", "/notify always", "/think on", "/display rich", "/display plain",
		"/language de",
		"/language en", "/usage", "/audit", "/context", "/compact", "/cron", "/files", "/get a.txt", "/cwd", "/users",
		"/doctor",
		"/reload", "/nonsense", "/terminal", "/rename another title", "//slash", "/role", "/project", "/consult")
	g.add(Type{By: g.user(), Text: Quoted(text), In: g.place()})
}

func (g *generator) reply() {
	if p, ok := g.recent(); ok {
		g.add(Reply{By: p.by, To: p.Token, Text: Quoted(pick(g, "because it is wrong", "the first one", "12"))})
	}
}

func (g *generator) schedule() {
	by, in := g.user(), g.place()
	s := Schedule{By: by, In: in, After: g.between(time.Minute, 10*time.Minute).Round(time.Minute)}
	if g.chance(40) {
		s.After, s.Every = 0, pick(g, time.Hour, 2*time.Hour)
	}
	s.Prompt = g.prompt(by, in)
	g.add(s)
	g.add(Wait{For: 2 * time.Second})
	g.add(Press{By: by, Button: AddJob, Of: s.Token})
	if g.chance(70) {
		g.add(Wait{For: pick(g, 5*time.Minute, 11*time.Minute, 3*time.Hour)})
	}
}

func (g *generator) webhook() {
	p := g.prompt(Owner, "")
	g.add(Deliver{p})
	if g.chance(40) {
		g.add(Redeliver{p.Token})
	}
}

func (g *generator) terminal() {
	p := g.prompt(Owner, "")
	g.add(Terminal{Does: pick(g, TerminalAsks, TerminalAsks, TerminalEnds), Token: p.Token})
}

func (g *generator) wait() {
	switch n := g.IntN(100); {
	case n < 35:
		g.add(Wait{For: g.between(time.Millisecond, 500*time.Millisecond)})
	case n < 65:
		g.add(Wait{For: g.between(500*time.Millisecond, 6*time.Second)})
	case n < 75:
		g.add(Wait{For: g.between(10*time.Second, 2*time.Minute)})
	case n < 80:
		g.add(Wait{For: g.between(5*time.Minute, 2*time.Hour)})
	default:
		g.add(Settle{})
	}
}

func (g *generator) stop() {
	s := Stop{How: pick(g, Crash, Crash, Crash, Crash, Power, Power, Restart, Upgrade)}
	if g.chance(60) {
		s.Point, s.N = pick(g, AtCall, AtWrite, AtFlush, AtOutput), 1+g.IntN(12)
	}
	if g.chance(40) {
		s.Down = pick(g, g.between(time.Second, 30*time.Second), g.between(time.Minute, 20*time.Minute))
	}
	g.add(s)
}

func (g *generator) telegram() {
	t := Telegram{Fault: TelegramFault(pick(g, TelegramFault("").values()...))}
	if g.chance(30) { // prefer faults after which ductor cannot know that the call took effect
		t.Fault = pick(g, DropAfter, Half, GatewayAfter)
	}
	switch t.Fault {
	case LimitsStrict, LimitsReal:
	case TooMany, TooManyUnseen:
		t.For = g.between(time.Second, time.Minute).Round(time.Second)
	case Ban:
		t.For = pick(g, time.Minute, 10*time.Minute, 10000*time.Second)
	case Late:
		t.For = g.between(time.Second, 90*time.Second)
	case Away:
		t.For = g.between(time.Second, 10*time.Minute)
	}
	switch t.Fault {
	case LimitsStrict, LimitsReal, Ban, Away:
	default:
		t.Method = pick(g, "", "sendMessage", "sendMessage", "editMessageText", "editMessageText", "getUpdates",
			"answerCallbackQuery", "deleteMessage", "sendDocument")
		if g.chance(30) {
			t.Skip = g.IntN(5)
		}
		if g.chance(50) {
			t.Times = 1 + g.IntN(6)
		}
	}
	g.add(t)
}

func (g *generator) updates() {
	g.add(Updates{How: pick(g, Duplicate, Reorder, Lag), N: 1 + g.IntN(5)})
}

func (g *generator) disk() {
	d := Disk{Fault: pick(g, DiskFull, DiskFull, DiskEIO, DiskFsync, DiskSlow)}
	switch d.Fault {
	case DiskSlow:
		d.For, d.Times = g.between(10*time.Millisecond, 3*time.Second), 1+g.IntN(20)
	case DiskFull:
		d.For = g.between(time.Second, 2*time.Minute)
	default:
		d.Skip, d.Times = g.IntN(20), 1+g.IntN(3)
	}
	g.add(d)
	// ductor cannot store a message that arrives now, so it must not acknowledge the message.
	if d.Fault == DiskFull && g.chance(60) {
		g.begin(pick(g, Owner, Owner, Ann), g.place(), Run{})
		g.pause()
		g.add(Stop{How: pick(g, Crash, Crash, Power, Restart)})
		return
	}
	if g.chance(50) {
		g.say()
		g.wait()
		if g.chance(40) {
			g.stop()
		}
	}
}

// happen adds a step with an event in a chat, such as a block of the bot, or with the reversal of an earlier event.
func (g *generator) happen() {
	if len(g.events) > 0 && g.chance(60) {
		g.add(g.events[0])
		g.events = g.events[1:]
		return
	}
	h, back := Happen{In: Place(pick(g, Owner, Owner, Ann)), What: Blocks}, Unblocks
	if len(g.places) > 0 && g.chance(70) {
		h.In = pick(g, g.places...)
		switch h.In {
		case "team":
			h.What, back = pick(g, Kicks, Restricts), Readmits
			if g.scenario.Options.Chats[0].Kind == Group && g.chance(50) {
				h.What, back = Migrates, ""
			}
		case "lab":
			h.What, back = Kicks, Readmits
		default:
			h.What, back = Closes, Reopens
			if g.chance(30) {
				h.What, back = Deletes, ""
			}
		}
	}
	g.add(h)
	if back != "" {
		g.events = append(g.events, Happen{In: h.In, What: back})
	}
}

func (g *generator) clock() {
	if g.chance(50) {
		g.add(Clock{By: pick(g, -time.Hour, time.Hour, -time.Minute, time.Minute, 24*time.Hour, -10*time.Second)})
		return
	}
	g.add(Suspend{For: pick(g, time.Minute, 20*time.Minute, 8*time.Hour)})
}

func (g *generator) kill() {
	k := Kill{What: pick(g, Agents, Runner, Agent)}
	if k.What == Agent {
		p, ok := g.recent()
		if !ok {
			return
		}
		k.Of = p.Token
	}
	g.add(k)
}
