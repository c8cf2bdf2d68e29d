"""From one bilingual source notebook to a workspace, a release, marks and feedback. nbgrader stays the engine."""
