// Package fence marks text in prompts that the user did not write, such as a forwarded message. It also finds the
// user's own words in a prompt, for titles.
//
// The agent must be able to distinguish such text from the user's own words. So a header in brackets names the author,
// and every line of the text starts with "> ". No text can break out of its fence. Callers must quote names.
package fence

import (
	"fmt"
	"strconv"
	"strings"
)

// lineEnds replaces every character that an agent may read as a line break.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n",
	"\u2028", "\n", "\u2029", "\n")

const quoted = "> "

// Text returns a text with "> " before each line.
func Text(text string) string {
	if text == "" {
		return ""
	}
	return quoted + strings.ReplaceAll(strings.TrimRight(lineEnds.Replace(text), "\n"), "\n", "\n"+quoted)
}

// The beginnings of headers. Words recognizes headers by them.
const (
	forwarded = "[Forwarded from "
	byBot     = "[Written by the bot "
	reply     = "[In reply to "
	member    = "[From "
	file      = "[The file "
	speech    = "[Said in the message "
	recording = "[The recording "
	contact   = "[Contact: "
	location  = "[Location: "
	live      = "[Live location, as it was when it was sent: "
	place     = "[Place: "
)

// Forwarded returns the header of a message that the user forwarded.
func Forwarded(author string) string { return forwarded + author + ", not by the user]\n" }

// ByBot returns the header of a message that the user sent with the help of another bot.
func ByBot(bot string) string { return byBot + bot + ", not by the user]\n" }

// Reply returns the header and the text of the message to which the user replied.
func Reply(to, text string) string { return reply + to + "]\n" + Text(text) + "\n\n" }

// Member returns the header of a prompt that an unlisted member of a group has sent.
func Member(name string) string {
	return member + name + ", a member of the group who is not listed]\n"
}

// File returns the header for the file of the message to which the user replied.
func File(name string) string { return file + name + " is that of the message that this replies to]\n" }

// LostFile is like File, but for a file that could not be downloaded.
func LostFile(name string) string {
	return file + name + " of the message that this replies to could not be fetched]\n"
}

// Speech returns the header and the transcript of the voice message to which the user replied.
func Speech(said string) string { return speech + "that this replies to]\n" + Text(said) + "\n\n" }

// LostSpeech is like Speech, but for a voice message whose words are unknown.
func LostSpeech() string {
	return recording + "in the message that this replies to is missing: it could not be turned into text]\n"
}

// Contact describes a contact that the user sent.
func Contact(name, phone string) string { return contact + name + ", phone " + phone + "]" }

// Location is a place on earth that a user sent.
type Location struct {
	Latitude, Longitude float64
	Live                bool
	Name, Address       string // quoted; empty if the location has no name
}

// String returns the description of the location in a prompt.
func (l Location) String() string {
	at := fmt.Sprintf("latitude %.6f, longitude %.6f]", l.Latitude, l.Longitude)
	switch {
	case l.Name != "":
		return place + l.Name + " at " + l.Address + ", " + at
	case l.Live:
		return live + at
	}
	return location + at
}

// Words returns the user's own words in a prompt. If the user wrote nothing, it returns the forwarded words. It
// leaves out headers and the messages to which the user replied, and it shortens locations and contacts.
func Words(prompt string) string {
	var own, foreign []string
	fenced, drop, origin := false, false, false
	for line := range strings.SplitSeq(prompt, "\n") {
		text, isQuoted := strings.CutPrefix(line, quoted)
		switch {
		case hasPrefix(line, forwarded, byBot):
			fenced, drop, origin = true, false, true
		case hasPrefix(line, reply, speech):
			fenced, drop = true, true
		case hasPrefix(line, member, file, recording):
		case fenced && isQuoted && !drop:
			foreign = append(foreign, short(text))
		case fenced && isQuoted:
		case fenced && drop && origin && line == "": // this line ends the message to which the forwarded text replies
			drop = false
		default:
			fenced, drop, origin = false, false, false
			own = append(own, short(line))
		}
	}
	if words := strings.TrimSpace(strings.Join(own, "\n")); words != "" {
		return words
	}
	return strings.TrimSpace(strings.Join(foreign, "\n"))
}

// hasPrefix reports whether a line is a header that starts with any of the prefixes.
func hasPrefix(line string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(line, p) && strings.HasSuffix(line, "]") {
			return true
		}
	}
	return false
}

// short shortens a line that describes a contact, a place or a location. It returns only the name or, for a location
// without a name, the coordinates. It returns all other lines unchanged.
func short(line string) string {
	sign, rest, found := "📍 ", "", false
	for _, p := range []string{contact, place, location, live} {
		if rest, found = strings.CutPrefix(line, p); found {
			if p == contact {
				sign = "👤 "
			}
			break
		}
	}
	if !found {
		return line
	}
	if name, err := strconv.QuotedPrefix(rest); err == nil {
		name, _ = strconv.Unquote(name)
		return sign + name
	}
	var latitude, longitude float64
	if _, err := fmt.Sscanf(rest, "latitude %f, longitude %f]", &latitude, &longitude); err != nil {
		return line
	}
	return fmt.Sprintf("%s%.4f, %.4f", sign, latitude, longitude)
}
