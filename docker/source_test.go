package docker

import "testing"

// An engine that can neither fetch nor build gets the image from another one.
func TestAnImageFromAnotherEngine(t *testing.T) {
	first := needEngine(t)
	o := testOptions(t, startEngine(t).connect())
	o.Source = first
	s := newSandbox(t, o)
	status, err := s.Status(t.Context())
	if err != nil || status.ImageIs != StateToBuild {
		t.Errorf("before it is needed the image is %q, %v", status.ImageIs, err)
	}
	s.runTurn()
	if status, err = s.Status(t.Context()); err != nil || status.ImageIs != StateThere {
		t.Errorf("afterwards the image is %q, %v", status.ImageIs, err)
	}
	here, there, err := first.image(t.Context(), status.Image)
	sent, _, sentErr := o.Engine.image(t.Context(), status.Image)
	if err != nil || sentErr != nil || !there || here.ID != sent.ID {
		t.Errorf("the image is %s here (%v) and %s there (%v)", here.ID, err, sent.ID, sentErr)
	}
	o.Source, o.Build, o.Image = engineAt(t, "unix:///no/such/socket"), nil, "no-such-image:1"
	lost := newSandbox(t, o)
	_, err = lost.Launcher.Start(t.Context(), shell(o, lost.canary, "true"))
	lost.expectFailure(err, "/no/such/socket", "cannot be reached")
}
