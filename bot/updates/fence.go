package updates

import (
	"fmt"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// A prompt fences what others wrote, so that an agent can tell it from the user's own words: names are quoted, and
// every line of a text begins with "> ". Neither can end its fence, whatever is in it.

// namesLimit bounds a name in a prompt, in characters.
const namesLimit = 64

// fencedName is a name as a quoted string on one line; what cannot be seen is escaped.
func fencedName(name string) string {
	return strconv.Quote(render.Cut(strings.Join(strings.Fields(name), " "), namesLimit))
}

// lineEnds are the characters that something that reads a text may take for the end of a line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// fencedText is a text with "> " before each of its lines.
func fencedText(text string) string {
	if text == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(strings.TrimRight(lineEnds.Replace(text), "\n"), "\n", "\n> ")
}

// originOf says who wrote a message that the sender did not; empty for the sender's own words.
func originOf(m *wireMessage) string {
	switch {
	case m.Forwarded != nil:
		return "Forwarded from " + m.Forwarded.name()
	case m.ViaBot != nil:
		return "Written by the bot " + fencedName(m.ViaBot.Username)
	}
	return ""
}

// contextOf says what a message answers to or where it comes from.
func contextOf(m *wireMessage, me Identity) string {
	var b strings.Builder
	if origin := originOf(m); origin != "" {
		b.WriteString("[" + origin + ", not by the user]\n")
	}
	r := m.ReplyTo
	if r != nil && isTopicStart(m, r) {
		r = nil
	}
	quoted := ""
	switch {
	case m.Quote != nil:
		quoted = markdownOf(m.Quote.Text, m.Quote.Entities)
	case r != nil && !me.wrote(r): // of what the bot said, the agent may know; see receiver.name
		quoted = markdownOf(r.words())
	}
	if quoted == "" {
		return b.String()
	}
	b.WriteString("[In reply to " + authorOf(r, me) + "]\n" + fencedText(render.Cut(quoted, quoteLimit)) + "\n\n")
	return b.String()
}

// memberLine says that a member of the group wrote a message.
func memberLine(m *wireMessage) string {
	return "[From " + fencedName(m.From.name()) + ", a member of the group who is not listed]\n"
}

// Bounds of what is quoted before a prompt, in characters: of a message, and of the report of a job.
const (
	quoteLimit  = 4000
	reportLimit = 16000
)

// subjectOf is the context of a reply to a message of ours; empty if the agent knows what it means.
func subjectOf(in *Message, s orchestrator.Subject) string {
	text, limit, whom := in.reply.words, quoteLimit, "you"
	switch {
	case s.Job != "":
		text, limit, whom = s.Text, reportLimit, "the report of the job "+fencedName(s.Title)
	case s.Newest || in.reply.quoted:
		return ""
	case !s.Said:
		whom = "a message of ductor"
	case !s.Here:
		whom = "you, in another session"
	}
	if text == "" { // a rich message
		text = s.Text
	}
	if text == "" {
		return ""
	}
	return "[In reply to " + whom + "]\n" + fencedText(render.Cut(text, limit)) + "\n\n"
}

// broughtFile, lostFile and broughtSpeech are the context of a message that replies to one with a file.
func broughtFile(name string) string {
	return "[The file " + fencedName(name) + " is that of the message that this replies to]\n"
}

func lostFile(name string) string {
	return "[The file " + fencedName(name) + " of the message that this replies to could not be fetched]\n"
}

func broughtSpeech(said string) string {
	return "[Said in the message that this replies to]\n" + fencedText(said) + "\n\n"
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

// name is who a forwarded message is from, fenced.
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

// words are the text of a message, wherever it stands, and its entities. A place and a contact are said in words.
func (m *wireMessage) words() (string, []wireEntity) {
	switch {
	case m.Text != "":
		return m.Text, m.Entities
	case m.Caption == "":
		return m.thing(), nil
	}
	return m.Caption, m.CaptionEntities
}

// thing says what a message is that has no text; empty for one that an agent has no use for. Names and addresses are
// quoted, since others wrote them.
func (m *wireMessage) thing() string {
	switch {
	case m.Contact != nil:
		return "[Contact: " + fencedName(m.Contact.FirstName+" "+m.Contact.LastName) + ", phone " + fencedName(m.Contact.Phone) + "]"
	case m.Location == nil:
		return ""
	}
	kind, name := "Location", ""
	if m.Location.Live > 0 {
		kind = "Live location, as it was when it was sent"
	}
	if m.Venue != nil {
		kind, name = "Place", fencedName(m.Venue.Title)+" at "+fencedName(m.Venue.Address)+", "
	}
	return fmt.Sprintf("[%s: %slatitude %.6f, longitude %.6f]", kind, name, m.Location.Latitude, m.Location.Longitude)
}
