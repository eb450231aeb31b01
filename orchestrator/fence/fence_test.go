package fence

import "testing"

func TestWords(t *testing.T) {
	forwarded, reply := Forwarded(`"Bob"`), Reply(`"Ann"`, "x\n\ny")
	for _, tt := range []struct{ name, prompt, want string }{
		{"the user's own text", "fix it\n> as quoted by me\n\nsoon", "fix it\n> as quoted by me\n\nsoon"},
		{"brackets of the user", "[ERROR] why?\n[In reply to", "[ERROR] why?\n[In reply to"},
		{"forwarded", forwarded + Text("Hallo\n\nBob"), "Hallo\n\nBob"},
		{"sent with a bot", ByBot(`"gif"`) + Text("Hallo"), "Hallo"},
		{"forwarded, then a comment", forwarded + Text("Hallo") + "\n\nwhat is this?", "what is this?"},
		{"a comment, then forwarded", "what is this?\n" + forwarded + Text("Hallo"), "what is this?"},
		{"forwarded twice", forwarded + Text("a") + "\n" + Forwarded(`"Eve"`) + Text("b"), "a\nb"},
		{"reply", reply + "why is it?", "why is it?"},
		{"reply with a file only", reply, ""},
		{"forwarded reply", forwarded + reply + Text("because"), "because"},
		{"reply to a file", File(`"a.pdf"`) + LostFile(`"b.pdf"`) + "read it", "read it"},
		{"reply to speech", Speech("hello\nyou") + "translate", "translate"},
		{"reply to speech that is missing", LostSpeech() + "translate", "translate"},
		{"member", Member(`"Eve"`) + reply + "hi", "hi"},
		{"location", Location{Latitude: 1.5, Longitude: -2.25}.String(), "📍 1.5000, -2.2500"},
		{"live location", Location{Latitude: 1.5, Live: true}.String(), "📍 1.5000, 0.0000"},
		{"place", Location{Name: `"Café \"X\""`, Address: `"Street 1"`}.String(), `📍 Café "X"`},
		{"contact", Contact(`"Ann Lee"`, `"+49"`), "👤 Ann Lee"},
		{"forwarded contact", forwarded + Text(Contact(`"Ann"`, `"+49"`)), "👤 Ann"},
	} {
		if got := Words(tt.prompt); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
