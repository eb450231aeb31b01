package updates

import (
	"fmt"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// In a prompt, texts of others are fenced, so that an agent can distinguish them from the user's own words. Names are
// quoted, and every line of a text starts with "> ". No content can end its fence.

// namesLimit limits a name in a prompt, in characters.
const namesLimit = 64

// fencedName returns a name as a quoted string on one line, with invisible characters escaped.
func fencedName(name string) string {
	return strconv.Quote(render.Cut(strings.Join(strings.Fields(name), " "), namesLimit))
}

// lineEnds replaces all characters that an agent may treat as the end of a line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n",
	"\u2028", "\n", "\u2029", "\n")

// fencedText returns a text with "> " before each line.
func fencedText(text string) string {
	if text == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(strings.TrimRight(lineEnds.Replace(text), "\n"), "\n", "\n> ")
}

// originOf describes the author of a message that its sender did not write. It returns "" for the sender's own words.
func originOf(m *wireMessage) string {
	switch {
	case m.Forwarded != nil:
		return "Forwarded from " + m.Forwarded.name()
	case m.ViaBot != nil:
		return "Written by the bot " + fencedName(m.ViaBot.Username)
	}
	return ""
}

// contextOf describes the message that m replies to, or m's origin.
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
	case r != nil && !me.wrote(r): // for the bot's own messages, receiver.addSubject decides
		quoted = markdownOf(r.textAndEntities())
	}
	if quoted == "" {
		return b.String()
	}
	b.WriteString("[In reply to " + authorOf(r, me) + "]\n" + fencedText(render.Cut(quoted, quoteLimit)) + "\n\n")
	return b.String()
}

// memberLine marks a message as written by a member of the group who is not a listed user.
func memberLine(m *wireMessage) string {
	return "[From " + fencedName(m.From.name()) + ", a member of the group who is not listed]\n"
}

// Maximum lengths of the quoted text before a prompt, in characters.
const (
	quoteLimit  = 4000  // for a message
	reportLimit = 16000 // for a job's report
)

// subjectOf returns the context of a reply to a message of the bot. It returns "" if the agent knows that message.
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
	if text == "" { // a rich message
		text = s.Text
	}
	if text == "" {
		return ""
	}
	return "[In reply to " + whom + "]\n" + fencedText(render.Cut(text, limit)) + "\n\n"
}

// broughtFile, lostFile and broughtSpeech return the context of a message that replies to a file.
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

// name returns the fenced name of a forwarded message's author.
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

// textAndEntities returns the text or caption of a message, with its entities. It describes a place or a contact in
// words.
func (m *wireMessage) textAndEntities() (string, []wireEntity) {
	switch {
	case m.Text != "":
		return m.Text, m.Entities
	case m.Caption == "":
		return m.describeContent(), nil
	}
	return m.Caption, m.CaptionEntities
}

// describeContent describes a message without text, or returns "" if an agent cannot use the message. It quotes names
// and addresses, because others wrote them.
func (m *wireMessage) describeContent() string {
	switch {
	case m.Contact != nil:
		return "[Contact: " + fencedName(m.Contact.FirstName+" "+m.Contact.LastName) + ", phone " +
			fencedName(m.Contact.Phone) + "]"
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
