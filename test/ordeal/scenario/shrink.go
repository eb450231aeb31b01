package scenario

import "slices"

// Shrink returns a smaller scenario that still fails. No single step or act can be removed from the result. Shrink
// removes large parts of the steps first, then smaller parts, then acts, options and numbers (delta debugging). fails
// reports whether a scenario fails. If s does not fail, Shrink returns s.
func Shrink(s Scenario, fails func(Scenario) bool) Scenario {
	if !fails(s) {
		return s
	}
	for {
		before := s.String()
		s.Steps = without(s.Steps, func(steps []Step) bool { return fails(Scenario{s.Seed, s.Options, steps}) })
		s = shrinkActs(s, fails)
		s = shrinkOptions(s, fails)
		s = simplify(s, fails)
		if s.String() == before {
			return s
		}
	}
}

// without removes as many elements as possible. fails must return true for the remaining elements.
func without[T any](all []T, fails func([]T) bool) []T {
	for size := max(1, len(all)/2); ; size /= 2 {
		for at := 0; at < len(all); {
			rest := slices.Concat(all[:at], all[min(at+size, len(all)):])
			if fails(rest) {
				all = rest
			} else {
				at += size
			}
		}
		if size <= 1 {
			return all
		}
	}
}

func shrinkActs(s Scenario, fails func(Scenario) bool) Scenario {
	for i := range s.Steps {
		p, ok := PromptOf(s.Steps[i])
		if !ok {
			continue
		}
		p.Acts = without(p.Acts, func(acts []Act) bool { return fails(s.with(i, withActs(s.Steps[i], acts))) })
		s = s.with(i, withActs(s.Steps[i], p.Acts))
		for j, act := range p.Acts {
			for _, simpler := range simplerActs(act) {
				acts := slices.Clone(p.Acts)
				acts[j] = simpler
				if now := s.with(i, withActs(s.Steps[i], acts)); fails(now) {
					s, p.Acts = now, acts
					break
				}
			}
		}
	}
	return s
}

func shrinkOptions(s Scenario, fails func(Scenario) bool) Scenario {
	o := s.Options
	try := func(o Options) bool { return fails(Scenario{s.Seed, o, s.Steps}) }
	o.Settings = without(o.Settings, func(list []Setting) bool { now := o; now.Settings = list; return try(now) })
	o.Languages = without(o.Languages, func(list []Language) bool { now := o; now.Languages = list; return try(now) })
	o.Chats = without(o.Chats, func(list []Chat) bool { now := o; now.Chats = list; return try(now) })
	o.Agents = without(o.Agents, func(list []string) bool { now := o; now.Agents = list; return try(now) })
	s.Options = o
	return s
}

// simplify replaces steps by simpler steps, for example with fewer photos, a single fault, or a message that is not a
// reply.
func simplify(s Scenario, fails func(Scenario) bool) Scenario {
	for i := range s.Steps {
		for _, simpler := range simpler(s.Steps[i]) {
			if now := s.with(i, simpler); fails(now) {
				s = now
				break
			}
		}
	}
	return s
}

// with returns a copy of the scenario in which step i is replaced.
func (s Scenario) with(i int, step Step) Scenario {
	s.Steps = slices.Clone(s.Steps)
	s.Steps[i] = step
	return s
}

func withActs(step Step, acts []Act) Step {
	if len(acts) == 0 {
		acts = nil
	}
	switch step := step.(type) {
	case Say:
		step.Acts = acts
		return step
	case Send:
		step.Acts = acts
		return step
	case Edit:
		step.Acts = acts
		return step
	case Schedule:
		step.Acts = acts
		return step
	case Deliver:
		step.Acts = acts
		return step
	}
	return step
}

// simpler returns simpler versions of a step, the simplest first.
func simpler(step Step) (all []Step) {
	switch step := step.(type) {
	case Say:
		if step.ReplyTo != "" {
			plain := step
			plain.ReplyTo = ""
			all = append(all, plain)
		}
		if step.In != "" {
			step.In, step.ReplyTo = "", ""
			all = append(all, step)
		}
	case Send:
		all = append(all, Say{By: step.By, In: step.In, Prompt: step.Prompt})
		if step.Count > 1 {
			step.Count = 1
			all = append(all, step)
		}
	case Stop:
		if step.Point != "" {
			all = append(all, Stop{How: step.How, Down: step.Down})
		}
		if step.Down != 0 {
			step.Down = 0
			all = append(all, step)
		}
	case Telegram:
		if step.Skip+step.Times > 0 {
			step.Skip, step.Times = 0, 0
			all = append(all, step)
		}
	case Press:
		if step.Old {
			step.Old = false
			all = append(all, step)
		}
	}
	return all
}

func simplerActs(act Act) (all []Act) {
	switch act := act.(type) {
	case Text:
		if act.Words > 1 {
			all = append(all, Text{Words: 1}, Text{Words: act.Words / 2, Every: act.Every})
		}
		if act.Every > 0 {
			all = append(all, Text{Words: act.Words})
		}
	case Run:
		if act.For > 0 {
			all = append(all, Run{})
		}
	case Think:
		if act.Words > 1 {
			all = append(all, Think{Words: 1})
		}
	}
	return all
}
