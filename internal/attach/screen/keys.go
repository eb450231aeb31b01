package screen

import (
	"slices"

	"ductor/internal/attach/wire"
)

// Paste inserts pasted text into the current input.
func (s *Screen) Paste(text string) { s.editor().insert(text) }

// editor returns the input that has the focus.
func (s *Screen) editor() *editor {
	if s.focus == onPrompt || s.focus == onAsk {
		return &s.input
	}
	return &s.words
}

// Key handles a key. The name of a key is, for example, "enter". The parameter text is the text that the key types. Key
// returns the requests to send to ductor, and whether the user wants to leave the conversation.
func (s *Screen) Key(name, text string) (requests []wire.Request, leave bool) {
	switch name {
	case "ctrl+c":
		if s.focus == onPrompt && s.input.text() == "" {
			return nil, true
		}
		s.focus, s.words = onPrompt, editor{}
		s.input = editor{}
		return nil, false
	case "ctrl+d":
		if s.focus == onPrompt && s.input.text() == "" {
			return nil, true
		}
	case "ctrl+n":
		return s.turnTo(1), false
	case "ctrl+p":
		return s.turnTo(-1), false
	case "ctrl+o":
		s.open = !s.open
		return nil, false
	case "ctrl+x":
		if t := s.shown().running(); t != nil {
			return s.request(wire.Request{Abort: &wire.Abort{ID: s.NewID(), Turn: t.Turn}}), false
		}
		return nil, false
	case "ctrl+r":
		return s.takeBack(), false
	}
	if s.focus == onAsk {
		return s.askKey(name), false
	}
	switch name {
	case "tab", "shift+tab", "esc":
		if s.focus == onPrompt && name != "esc" && s.ask() != nil {
			s.focus = onAsk
		} else {
			s.focus, s.words = onPrompt, editor{}
		}
	case "enter":
		return s.enter(), false
	case "pgup":
		s.shown().scrolled += max(s.shown().page-1, 1)
	case "pgdown":
		s.shown().scrolled -= max(s.shown().page-1, 1)
	case "up": // many terminals send this key for the mouse wheel
		s.shown().scrolled++
	case "down":
		s.shown().scrolled--
	default:
		if !s.editor().key(name) {
			s.editor().insert(text)
		}
	}
	return nil, false
}

func (s *Screen) enter() []wire.Request {
	if s.focus == onPrompt {
		requests := s.Submit(s.input.text())
		if requests != nil {
			s.input = editor{}
			s.shown().lowest = nil
		}
		return requests
	}
	k := s.ask()
	if k == nil || s.words.text() == "" {
		return nil
	}
	words := s.words.text()
	s.words = editor{}
	return s.decide(k, words)
}

// decide applies the option under the cursor. It returns the decision as a request, or nil if the user must still make
// other choices.
func (s *Screen) decide(k *ask, words string) []wire.Request {
	s.focus = onAsk
	d := k.choose(words)
	if d == nil {
		return nil
	}
	s.focus = onPrompt
	d.ID = s.NewID()
	return s.request(wire.Request{Decide: d})
}

// askKey handles a key while the options of an approval have the focus.
func (s *Screen) askKey(name string) []wire.Request {
	k := s.ask()
	if k == nil || name == "tab" || name == "shift+tab" || name == "esc" {
		s.focus = onPrompt
		return nil
	}
	all := k.options()
	switch name {
	case "up":
		k.choice = max(k.choice-1, 0)
	case "down":
		k.choice = min(k.choice+1, len(all)-1)
	case "pgup":
		k.top = max(k.top-k.shown, 0)
	case "pgdown":
		k.top += k.shown
	case "enter", "space":
		if k.choice < len(all) && all[k.choice].needs != onPrompt {
			s.focus = all[k.choice].needs
			return nil
		}
		return s.decide(k, "")
	}
	return nil
}

// turnTo switches to the next conversation if step is 1, and to the previous conversation if step is -1.
func (s *Screen) turnTo(step int) []wire.Request {
	if len(s.all) == 0 {
		return nil
	}
	i := slices.IndexFunc(s.all, func(c wire.Conversation) bool { return c.Key == s.wanted })
	if i < 0 && step < 0 {
		i = 0
	}
	next := s.all[(i+step+len(s.all))%len(s.all)].Key
	if next == s.wanted {
		return nil
	}
	s.wanted, s.focus, s.words = next, onPrompt, editor{}
	return []wire.Request{{Open: &wire.Open{Conversation: next}}, {List: &wire.List{}}}
}

// takeBack removes the last waiting prompt from the queue, so that the user can edit it.
func (s *Screen) takeBack() []wire.Request {
	queue := s.shown().queue
	if len(queue) == 0 || s.input.text() != "" {
		return nil
	}
	last := queue[len(queue)-1]
	requests := s.request(wire.Request{Cancel: &wire.Cancel{ID: s.NewID(), Turn: last.Turn}})
	s.pending[len(s.pending)-1].edits = last.Prompt
	return requests
}
