package cli

import "testing"

func TestWithoutCodes(t *testing.T) {
	for printed, want := range map[string]string{
		"\x1b[1;31mred\x1b[0m \x1b[38:5:9mand\x1b[m":                   "red and",
		"\x1b[2K\x1b[1G50%\x1b[?25h":                                   "50%",
		"\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x07 \x1b]0;t\x07": "link ",
		"\x1b(B\x1b7\x1b=\x1bcplain":                                   "plain",
		"0%\r50%\r100%\ndone\r\n\r":                                    "100%\ndone\n",
		"a\r\r\nb\rc":                                                  "a\nc",
		"cut \x1b[3":                                                   "cut ",
		"cut \x1b]8;;https://a":                                        "cut ",
		"cut \x1b":                                                     "cut ",
		"[31m stays, \x1b]0;title without an end\nstays":               "[31m stays, \x1b]0;title without an end\nstays",
	} {
		if got := WithoutCodes(printed); got != want {
			t.Errorf("%q: %q, want %q", printed, got, want)
		}
	}
}
