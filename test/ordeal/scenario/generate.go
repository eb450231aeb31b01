package scenario

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Profile configures which scenarios Generate creates.
type Profile struct {
	// Steps is the maximum number of steps. Zero means 40.
	Steps int
	// Agents contains the agents that are installed. The default is Claude.
	Agents []string
	// Without lists kinds of steps that the scenario must not contain, as returned by Kind: for example "power" or "disk
	// full".
	Without []string
	// If Calm is true, the scenario has no faults.
	Calm bool
}

// Generate creates a scenario. The same seed and profile always result in the same scenario.
func Generate(seed uint64, p Profile) Scenario {
	if p.Steps == 0 {
		p.Steps = 40
	}
	if len(p.Agents) == 0 {
		p.Agents = []string{"claude"}
	}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x0DEA1)), profile: p}
	g.scenario.Seed = seed
	g.options()
	g.say()
	for n := 3 + g.IntN(p.Steps-2); len(g.scenario.Steps) < n; {
		g.step()
	}
	return g.scenario
}

type generator struct {
	*rand.Rand
	profile  Profile
	scenario Scenario
	prompts  []placed // all prompts so far
	places   []Place  // all groups and their topics
	events   []Happen // events that can be reverted
	budget   bool     // the configuration contains a budget
}

// placed is a prompt, and the place to which it is sent.
type placed struct {
	Prompt
	by Person
	in Place
}

// options generates the options of a scenario. Most scenarios have simple options.
func (g *generator) options() {
	o := &g.scenario.Options
	o.Agents = append(o.Agents, g.profile.Agents[g.IntN(len(g.profile.Agents))])
	if len(g.profile.Agents) > 1 && g.chance(30) {
		o.Agents = g.profile.Agents
	}
	for _, who := range []Person{Owner, Ann} {
		if g.chance(10) {
			o.Languages = append(o.Languages, Language{who, pick(g, "de", "zh", "en")})
		}
	}
	if g.chance(40) {
		c := Chat{Name: "team", Kind: pick(g, Group, Supergroup)}
		o.Chats = append(o.Chats, c)
		g.places = append(g.places, "team")
	}
	if g.chance(40) {
		o.Chats = append(o.Chats, Chat{Name: "lab", Kind: Forum, Topics: []string{"red", "blue"}})
		g.places = append(g.places, "lab", "lab/red", "lab/blue")
	}
	set := func(percent int, key, value string) {
		if g.chance(percent) {
			o.Settings = append(o.Settings, Setting{key, Quoted(value)})
		}
	}
	set(30, "permissions.mode", pick(g, `"ask"`, `"accept-edits"`, `"plan"`))
	set(15, "stream.mode", `"draft"`)
	set(15, "stream.display", pick(g, `"rich"`, `"plain"`))
	set(10, "queue.max", "3")
	if g.budget = g.chance(15); g.budget {
		set(100, "budget.day", "0.05")
	}
	set(10, "agents.grace", `"500ms"`)
	set(10, "permissions.ask_timeout", `"1m"`)
	set(10, "agents."+o.Agents[0]+".mode", `"one-shot"`)
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// between returns a random duration from least to most. The duration is rounded, so that scenarios are easy to read.
func (g *generator) between(least, most time.Duration) time.Duration {
	d := least + time.Duration(g.Int64N(int64(most-least)+1))
	switch {
	case d > time.Minute:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// add appends a step, unless the profile excludes such steps.
func (g *generator) add(step Step) {
	if g.profile.Calm && IsFault(step) {
		return
	}
	kind := Kind(step)
	for _, without := range g.profile.Without {
		if without == kind {
			return
		}
	}
	g.scenario.Steps = append(g.scenario.Steps, step)
}

// choice is a possible next step. Its probability is proportional to its weight.
type choice struct {
	weight int
	do     func(*generator)
}

func choices() []choice {
	return []choice{
		{22, (*generator).say},
		{7, (*generator).queue},
		{9, (*generator).ask},
		{5, (*generator).insist},
		{6, (*generator).ending},
		{5, (*generator).halt},
		{4, (*generator).spend},
		{3, (*generator).send},
		{4, (*generator).edit},
		{18, (*generator).press},
		{6, (*generator).pressAny},
		{8, (*generator).command},
		{3, (*generator).reply},
		{2, (*generator).schedule},
		{2, (*generator).webhook},
		{1, (*generator).terminal},
		{22, (*generator).wait},
		{9, (*generator).stop},
		{11, (*generator).telegram},
		{3, (*generator).updates},
		{3, (*generator).disk},
		{3, (*generator).happen},
		{2, (*generator).clock},
		{3, (*generator).kill},
		{1, func(g *generator) { g.add(Heal{}) }},
	}
}

func (g *generator) step() {
	all := choices()
	sum := 0
	for _, c := range all {
		sum += c.weight
	}
	n := g.IntN(sum)
	for _, c := range all {
		if n -= c.weight; n < 0 {
			c.do(g)
			return
		}
	}
}

// user returns a random user, mostly the owner.
func (g *generator) user() Person {
	switch n := g.IntN(100); {
	case n < 70:
		return Owner
	case n < 88:
		return Ann
	case n < 94:
		return Bob
	}
	return Mallory
}

func (g *generator) place() Place {
	if len(g.places) == 0 || g.chance(60) {
		return ""
	}
	return pick(g, g.places...)
}

// prompt creates a prompt with a new token, and adds it to g.prompts.
func (g *generator) prompt(by Person, in Place) Prompt {
	p := Prompt{Token: Token(fmt.Sprintf("p%d", len(g.prompts)+1)), Acts: g.acts()}
	g.prompts = append(g.prompts, placed{p, by, in})
	return p
}

func (g *generator) acts() (all []Act) {
	if g.chance(60) { // cause an effect early in the turn
		all = append(all, Run{})
	}
	for n := len(all) + 1 + g.IntN(4); len(all) < n; {
		all = append(all, g.act())
	}
	if g.budget && g.chance(30) {
		all = append(all, Cost{Cents: 2 + g.IntN(4)})
	}
	if g.chance(70) {
		all = append(all, Text{Words: 1 + g.IntN(30)})
	}
	return all
}

func (g *generator) act() Act {
	n := g.IntN(100)
	switch {
	case n < 30:
		return g.text()
	case n < 48:
		return Run{For: pick(g, 0, 0, 0, g.between(100*time.Millisecond, 5*time.Second), 30*time.Second)}
	case n < 60:
		return Ask{}
	case n < 74:
		return Write{File: pick(g, "a.txt", "b.txt", "shared.txt", "deep/er.txt")}
	case n < 80:
		return Sleep{For: g.between(50*time.Millisecond, 20*time.Second)}
	case n < 84:
		return Think{Words: 5 + g.IntN(40)}
	case n < 86:
		return Leak{}
	case n < 88:
		return Cost{Cents: 1 + g.IntN(5)}
	case n < 89:
		return Background{For: g.between(time.Second, 10*time.Second)}
	case n < 90:
		return Question{Text: "Which one?"}
	case n < 91:
		return Compact{}
	case n < 95:
		return Fail{Status: pick(g, 400, 401, 429, 500, 529), Times: pick(g, 0, 1, 2)}
	}
	return Break{How: pick(g, Crashes, Hangs, Floods, Garbage, Silent, Drops, Stubborn, Holding)}
}

func (g *generator) text() Text {
	switch n := g.IntN(100); {
	case n < 60:
		return Text{Words: 1 + g.IntN(60), Every: pick(g, 0, 5*time.Millisecond, 20*time.Millisecond,
			100*time.Millisecond)}
	case n < 90:
		return Text{Words: 60 + g.IntN(600), Every: pick(g, 0, 20*time.Millisecond)}
	}
	return Text{Words: 700 + g.IntN(3000)}
}
