package cli

import "testing"

func TestWhoEndedAProgram(t *testing.T) {
	for exit, outside := range map[ExitStatus]bool{
		{Code: 143}: true, {Code: -15, Signal: true}: true, {Code: 0, By: EndedByTerminated}: true, {Code: CodeUnknown, By: EndedUnseen}: true,
		{Code: 1}: false, {Code: -9, Signal: true}: false, {Code: 143, By: EndedByStop}: false, {Code: 143, By: EndedByAge}: false,
	} {
		if fromOutside(exit) != outside {
			t.Errorf("%+v was ended from outside: %v", exit, !outside)
		}
	}
}
