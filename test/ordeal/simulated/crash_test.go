package simulated

import (
	"strings"
	"testing"

	"ductor/test/ordeal/scenario"
)

func TestAPromptIsAnswered(t *testing.T) {
	s, err := scenario.Parse(`seed 1
owner says p1: text 20 every 20ms; run; text 5
`)
	if err != nil {
		t.Fatal(err)
	}
	found, log, _ := play(t, s)
	if len(found) > 0 {
		t.Log(strings.Join(log, "\n"))
	}
	for _, v := range found {
		t.Error(v)
	}
}
