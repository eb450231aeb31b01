package telegram

import (
	"cmp"
	"slices"
)

// ChatInfo describes a chat for a list of chats.
type ChatInfo struct {
	ID     ChatID
	Kind   ChatKind
	Title  string
	Topics []Topic // sorted by ID
	Forum  bool
}

// Chats returns all chats, sorted by descending ID. The private chats come first, because the IDs of groups are
// negative.
func (s *Server) Chats() []*Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Chat
	for _, c := range s.chats {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Chat) int { return cmp.Compare(b.id, a.id) })
	return list
}

// Info describes the chat for a list of chats.
func (c *Chat) Info() ChatInfo {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	info := ChatInfo{ID: c.id, Kind: c.kind, Title: c.title, Forum: c.forum}
	for _, t := range c.topics {
		info.Topics = append(info.Topics, *t)
	}
	slices.SortFunc(info.Topics, func(a, b Topic) int { return cmp.Compare(a.ID, b.ID) })
	return info
}

// Changed returns a channel that is closed when any chat changes or the server is closed. Call Changed before View, so
// that you miss no change between the two calls.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed.wait()
}

// Done returns a channel that is closed when the server is closed.
func (s *Server) Done() <-chan struct{} { return s.base.Done() }
