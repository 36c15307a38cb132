"""What is judged, as data: facts, rubric libraries and the language that their conditions are written in."""
