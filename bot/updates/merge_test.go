package updates

import "testing"

func TestCaptionsOfAnAlbum(t *testing.T) {
	album := []*Message{{sent: original{album: "g"}}, {sent: original{album: "g"}, Text: "one"}, {sent: original{album: "g"}}, {sent: original{album: "g"}, Text: "two"}}
	if got := wordingOf(album); got != "one\ntwo" {
		t.Errorf("captions %q, want a line each", got)
	}
}
