package bot

import (
	"crypto/rand"
	"sync"
)

// followers are told which messages notices became. A restart forgets them.
type followers struct {
	mu   sync.Mutex
	told map[string]func(message int)
}

// followersKept bounds those whose notices never leave.
const followersKept = 256

func newFollowers() followers { return followers{told: map[string]func(int){}} }

// add gives the name that a notice has its follower by.
func (f *followers) add(sent func(message int)) string {
	name := rand.Text()
	f.mu.Lock()
	defer f.mu.Unlock()
	for other := range f.told {
		if len(f.told) < followersKept {
			break
		}
		delete(f.told, other)
	}
	f.told[name] = sent
	return name
}

func (f *followers) tell(name string, message int) {
	f.mu.Lock()
	sent := f.told[name]
	delete(f.told, name)
	f.mu.Unlock()
	if sent != nil {
		sent(message)
	}
}
