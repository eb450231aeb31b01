package bot

import (
	"sync"

	"ductor/orchestrator"
)

// ranPrompts remembers the newest prompts that have run since ductor started, so that ductor can answer edits of their
// messages.
type ranPrompts struct {
	mu      sync.Mutex
	prompts map[ranKey]ranPrompt
}

type ranKey struct {
	in      orchestrator.ConversationID
	message int
}

type ranPrompt struct {
	text     string
	answered bool // the user knows that an edit has no effect
}

// mostRan limits how many prompts ranPrompts remembers.
const mostRan = 256

// remember stores the prompt of a turn that has ended. answered reports whether the user already knows that an edit of
// the prompt has no effect.
func (r *ranPrompts) remember(t orchestrator.Turn, answered bool) {
	if t.Prompt.Message == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := ranKey{t.Prompt.Conversation, t.Prompt.Message}
	answered = answered || r.prompts[key].answered
	if len(r.prompts) >= mostRan || r.prompts == nil {
		r.prompts = map[ranKey]ranPrompt{}
	}
	r.prompts[key] = ranPrompt{t.Prompt.Text, answered}
}

// answer reports whether the user must be told that the prompt of a message has already run. It returns true only once
// for each message. text is the new prompt, and words are the user's own words in it.
func (r *ranPrompts) answer(in orchestrator.ConversationID, message int, text, words string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.prompts[ranKey{in, message}]
	if !known || was.answered || sameWords(was.text, text, words) {
		return false
	}
	was.answered = true
	r.prompts[ranKey{in, message}] = was
	return true
}
