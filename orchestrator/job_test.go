package orchestrator

import (
	"strings"
	"testing"

	"ductor/lang"
)

// A stored reason is shown in the language of its reader, also if another one was used when the run ended.
func TestTheReasonOfARunIsTranslated(t *testing.T) {
	german, chinese := lang.Language("de").Printer(), lang.Language("zh").Printer()
	for reason, detail := range map[RunReason]string{
		ReasonMissed: "", ReasonMissedMany: "", ReasonStillOpen: "", ReasonManyWaiting: "17", ReasonQuietHours: "",
		ReasonOutside: "/src/app", ReasonNoDir: "/src/app",
		ReasonReplacedDir: "/src/app", ReasonBadChoice: "no such role", ReasonTurnGone: "",
		ReasonUserEnded: "", ReasonTurnCancelled: "",
	} {
		r := JobRunResult{Reason: string(reason)}
		if detail != "" {
			r.Reason = string(reason.With(detail))
		}
		english := r.Explain(lang.Printer{})
		for _, got := range []string{r.Explain(german), r.Explain(chinese)} {
			if got == english || strings.Contains(got, string(reason)) || !strings.Contains(got, detail) {
				t.Errorf("%s: %q, in English %q", reason, got, english)
			}
		}
	}
	for _, text := range []string{"", "Er wurde abgebrochen, während er wartete.", "Claude failed.\nTwice."} {
		if got := (JobRunResult{Reason: text}).Explain(chinese); got != text {
			t.Errorf("the stored text %q becomes %q", text, got)
		}
	}
}
