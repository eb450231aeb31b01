package updates

import (
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

// namesLimit is the maximum length of a name in a prompt, in characters.
const namesLimit = 64

// fencedName returns a name in double quotes, on one line and without invisible characters.
func fencedName(name string) string {
	return strconv.Quote(render.Cut(strings.Join(strings.Fields(name), " "), namesLimit))
}

// originOf returns the header of a message that its sender did not write, such as a forwarded message. It returns ""
// for a message that the sender wrote.
func originOf(m *wireMessage) string {
	switch {
	case m.Forwarded != nil:
		return fence.Forwarded(m.Forwarded.name())
	case m.ViaBot != nil:
		return fence.ByBot(fencedName(m.ViaBot.Username))
	}
	return ""
}

// contextOf returns lines for the start of a prompt. If the sender did not write the message, the lines name its
// author. If the message replies to another message, they quote this other message.
func contextOf(m *wireMessage, me Identity) string {
	r := m.ReplyTo
	if r != nil && isTopicStart(m, r) {
		r = nil
	}
	quoted := ""
	switch {
	case m.Quote != nil:
		quoted = markdownOf(m.Quote.Text, m.Quote.Entities)
	case r != nil && !me.wrote(r): // if the bot wrote r, receiver.addSubject quotes it
		quoted = markdownOf(r.textAndEntities())
	}
	if quoted == "" {
		return originOf(m)
	}
	return originOf(m) + fence.Reply(authorOf(r, me), render.Cut(quoted, quoteLimit))
}

// Maximum lengths of text that is quoted before a prompt, in characters.
const (
	quoteLimit  = 4000  // for the text of a message
	reportLimit = 16000 // for the report of a scheduled job
)

// subjectOf returns lines for the start of a prompt that replies to a message of the bot. The lines quote the bot's
// message. subjectOf returns "" if the user replied to the agent's newest answer, because the agent then needs no
// quote.
func subjectOf(in *Message, s orchestrator.Subject) string {
	text, limit, whom := in.sent.reply.words, quoteLimit, "you"
	switch {
	case s.Job != "":
		text, limit, whom = s.Text, reportLimit, "the report of the job "+fencedName(s.Title)
	case s.Newest || in.sent.reply.quoted:
		return ""
	case !s.Said:
		whom = "a message of ductor"
	case !s.Here:
		whom = "you, in another session"
	}
	if text == "" { // rich messages contain no plain text
		text = s.Text
	}
	if text == "" {
		return ""
	}
	return fence.Reply(whom, render.Cut(text, limit))
}

func authorOf(r *wireMessage, me Identity) string {
	switch {
	case r == nil:
		return "a message of another chat"
	case me.wrote(r):
		return "you"
	case r.SenderChat != nil:
		return fencedName(r.SenderChat.Title)
	case r.From != nil:
		return fencedName(r.From.name())
	}
	return "somebody"
}

// name returns the fenced name of the user, group or channel that wrote a forwarded message.
func (o *wireOrigin) name() string {
	switch {
	case o.User != nil:
		return fencedName(o.User.name())
	case o.Chat != nil:
		return fencedName(o.Chat.Title)
	case o.Group != nil:
		return fencedName(o.Group.Title)
	case o.Hidden != "":
		return fencedName(o.Hidden)
	}
	return "somebody"
}

// textAndEntities returns the text or caption of a message and its formatting. For a location or a contact, it returns
// a description.
func (m *wireMessage) textAndEntities() (string, []wireEntity) {
	switch {
	case m.Text != "":
		return m.Text, m.Entities
	case m.Caption == "":
		return m.describeContent(), nil
	}
	return m.Caption, m.CaptionEntities
}

// describeContent describes a contact or location in words. It returns "" for other messages. Names and addresses are
// quoted, because the sender may not have written them.
func (m *wireMessage) describeContent() string {
	switch {
	case m.Contact != nil:
		return fence.Contact(fencedName(m.Contact.FirstName+" "+m.Contact.LastName), fencedName(m.Contact.Phone))
	case m.Location == nil:
		return ""
	}
	l := fence.Location{Latitude: m.Location.Latitude, Longitude: m.Location.Longitude, Live: m.Location.Live > 0}
	if m.Venue != nil {
		l.Name, l.Address = fencedName(m.Venue.Title), fencedName(m.Venue.Address)
	}
	return l.String()
}
