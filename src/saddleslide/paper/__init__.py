"""The paper's experiments: specifications as data, a runner that resumes, tables against print, figures, a report."""
